#include "report/questions/rest_of_event.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "report/text/format.h"
#include "report/windows.h"

namespace daydream {
namespace {

constexpr double kLonger = 1.10;
constexpr size_t kLeastOthers = 3;

}  // namespace

std::string LeaveOutRestOfEvents(std::span<const Stall> stalls, const Timeline& timeline,
                                 Graph& graph) {
  std::set<size_t> stalled;
  for (const Stall& s : stalls) {
    // In any step, as what holds up others is.
    if (s.kind == StallKind::kChurn || s.kind == StallKind::kHeldUp) continue;
    stalled.insert(graph.task(s.task).step);
  }
  const std::vector<size_t> counted = CountedSteps(graph);
  const std::vector<Duration> periods = CountedPeriods(graph, timeline);
  Duration longest;
  size_t others = 0;
  for (size_t i = 0; i < counted.size(); ++i) {
    if (stalled.contains(counted[i])) continue;
    longest = std::max(longest, periods[i]);
    ++others;
  }
  if (others < kLeastOthers) return "";
  std::string told;
  for (size_t i = 0; i < counted.size(); ++i) {
    if (!stalled.contains(counted[i]) || periods[i] <= longest.Scaled(kLonger)) continue;
    graph.mutable_step(counted[i]).measured = false;
    told += fmt::format("; {} does not count: without it, it still takes {} more than any other",
                        graph.steps()[counted[i]].label, FormatTime(periods[i] - longest));
  }
  return told;
}

}  // namespace daydream
