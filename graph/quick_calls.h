// What calls that submit work take when nothing is in their way. For the rules of the launch queue.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace daydream {

// By NameId: the first quartile of the durations of such calls and of records of events. Good
// enough to tell slow calls. O(host tasks).
std::vector<Duration> QuickCalls(const Builder& b);

// A slow call takes so long and so many times what it usually takes; so many of them tell that a
// queue was full (rule Q2).
constexpr Duration kLongCall = Duration::Us(30);
constexpr int64_t kTimesAsLong = 4;
constexpr size_t kLeastBlockedCalls = 20;

}  // namespace daydream
