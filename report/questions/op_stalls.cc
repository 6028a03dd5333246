#include "report/questions/op_stalls.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "base/median.h"
#include "base/text.h"
#include "report/stalls.h"
#include "report/text/format.h"

namespace daydream {
namespace {

struct OwnTime {
  NameId name;
  Duration time;
};

// Of the operators of one thread, whose rows are in the order of their begin.
void AddOwnTimes(const Trace& trace, size_t begin, size_t end, std::vector<OwnTime>& out) {
  struct Open {
    size_t row;
    Duration inside;
  };
  std::vector<Open> open;
  const auto close = [&] {
    const Open last = open.back();
    open.pop_back();
    if (!open.empty()) open.back().inside += trace.duration[last.row];
    if (trace.kind[last.row] != EventKind::kOp) return;
    out.push_back({trace.name[last.row], trace.duration[last.row] - last.inside});
  };
  for (size_t row = begin; row < end; ++row) {
    if (trace.kind[row] != EventKind::kOp && trace.kind[row] != EventKind::kCall) continue;
    while (!open.empty() && trace.End(open.back().row) <= trace.start[row]) close();
    open.push_back({row, {}});
  }
  while (!open.empty()) close();
}

}  // namespace

std::vector<Finding> FindingsOfOpStalls(const Graph& graph) {
  const Trace* trace = graph.tables().trace.get();
  if (trace == nullptr) return {};
  std::vector<OwnTime> ops;
  Duration recorded;  // of the longest thread
  for (size_t lane = 0; lane + 1 < trace->lane_begin.size(); ++lane) {
    const size_t begin = trace->lane_begin[lane], end = trace->lane_begin[lane + 1];
    if (trace->lanes[lane].kind != LaneKind::kThread || begin == end) continue;
    AddOwnTimes(*trace, begin, end, ops);
    recorded = std::max(recorded, trace->End(end - 1) - trace->start[begin]);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const OwnTime& a, const OwnTime& b) {
    return std::tuple(a.name, a.time) < std::tuple(b.name, b.time);
  });
  size_t stalls = 0;
  Duration time;
  std::vector<std::tuple<Duration, NameId, Duration>> longest;  // of a name, and its median
  for (size_t i = 0, next = 0; i < ops.size(); i = next) {
    while (next < ops.size() && ops[next].name == ops[i].name) ++next;
    if (next - i < kOpsToCompare || WaitsForOthers(graph.Name(ops[i].name))) continue;
    const Duration median = ops[i + (next - i) / 2].time;
    const Duration least = std::max(kLongOp, median * kOpsFarLonger);
    size_t own = 0;
    for (size_t k = next; k > i && ops[k - 1].time >= least; --k) {
      ++own;
      time += ops[k - 1].time - median;
    }
    if (own == 0) continue;
    stalls += own;
    longest.emplace_back(ops[next - 1].time, ops[i].name, median);
  }
  const double share = recorded.ns > 0 ? time.seconds() / recorded.seconds() : 0;
  if (stalls < kManyHeldUp || longest.size() < kSeveralNames || share < kHeldUpShare) return {};
  std::sort(longest.begin(), longest.end(),
            [](const auto& a, const auto& b) { return std::get<0>(a) > std::get<0>(b); });
  const auto& [worst, name, usual] = longest.front();
  return {{.kind = FindingKind::kOpStalls,
           .about = About::kStep,
           .text = fmt::format(
               "{} operators take {} of the {} recorded, where operators of their names take "
               "microseconds: something else had the core, or the program stood still",
               stalls, FormatTime(time), FormatTime(recorded)),
           .where = fmt::format("{}: {}, usually {}", graph.Name(name), FormatTime(worst),
                                FormatTime(usual)),
           .time = time,
           .share = std::min(share, 1.0),
           .fix = "give each process cores of its own (taskset, fewer OMP_NUM_THREADS, fewer "
                  "loader workers), look for garbage collection, then record again"}};
}

}  // namespace daydream
