// Events that no step can hold together with the rest: of another window of the recording, or with
// times that cannot be, such as a kernel that begins a day or thirty years after all others, or
// ends there. One such event would become the longest step of the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/time.h"

namespace daydream {

// Nothing begins or ends in a gap. No step goes on over one that is longer than a minute and than
// ten times all that was recorded on the side where most is.
inline constexpr Duration kShortestFarGap = Duration::Ns(60'000'000'000);
inline constexpr int64_t kFarGapFactor = 10;

// What ImportCount::what calls them where they are no mistake.
inline constexpr std::string_view kOtherWindows = "events of other windows";

struct FarEvents {
  Instant begin, end;  // of the stretch that holds most events, where it was looked at
  Duration gap;        // to the nearest of the others
  uint64_t far = 0, all = 0;

  // Few enough to be mistakes: one in a hundred, or one alone.
  bool few() const { return far * 2 < all && (far <= 1 || far * 100 <= all); }
  // What is near is enough to be a window of its own: one in ten.
  bool window() const { return (all - far) * 10 >= all; }
};

// Calls `add(begin, end)` for each event, the same ones every time.
using EachEvent = std::function<void(absl::FunctionRef<void(Instant begin, Instant end)> add)>;

// The events that lie behind such a gap; none when there is no such gap. Goes through all events
// once, and twice more when the whole is longer than a minute; coarse in a long whole, so it is
// asked again after events were left out.
std::optional<FarEvents> FindFarEvents(const EachEvent& each);

// "3.0 s", "2.5 days", "30.1 years".
std::string RoughTime(Duration d);

}  // namespace daydream
