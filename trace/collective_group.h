// What tells collectives of several ranks apart, as the one text that
// CollectiveDetail::process_group holds: the name of the group, and behind it what else was
// recorded of the call.
//
//   "tp_group"   "0 of [0, 1, 2, 3]"   "93825114103440 #337"   "0 of [0, 1] #12 0>1"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace daydream {

struct CollectiveGroup {
  std::string_view name;       // a pointer in older traces: it means nothing on another rank
  std::string_view members;    // "[0, 1, 2, 3]" as recorded, maybe cut; empty = not recorded
  int64_t sequence = -1;       // which collective of its group it is, counted on every member
  int32_t from = -1, to = -1;  // of point to point
};

// Fields that are empty or below 0 leave nothing; ParseCollectiveGroup gives the same again.
std::string FormatCollectiveGroup(const CollectiveGroup& group);
// Of any text: what does not read as above is part of the name. The views are into `text`.
CollectiveGroup ParseCollectiveGroup(std::string_view text);

}  // namespace daydream
