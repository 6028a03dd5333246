#include "report/questions/delay_findings.h"

#include <fmt/format.h>

#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr double kSmall = 0.05;  // of the recording

}  // namespace

std::optional<Finding> FindingOfDelays(const Graph& graph, const BuildReport& report,
                                       const Stalls& stalls, size_t steps) {
  const std::vector<Interval> taken = StretchesTaken(stalls.all, graph);
  TaskId longest;
  Duration most, with_stalls;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || !IsUnexplained(t) || IsGuessed(graph, TaskId(i))) continue;
    const Duration gone = Inside(taken, Window{0, t.recorded_start, t.recorded_start + t.duration});
    with_stalls += gone;
    if (!longest.valid() || t.duration - gone > most) longest = TaskId(i), most = t.duration - gone;
  }
  const Duration time = report.unexplained_time - with_stalls;
  const Duration window = report.window - stalls.taken;
  if (time <= window.Scaled(kSmall)) return std::nullopt;
  const double share = window > Duration{} ? time.seconds() / window.seconds() : 0;
  Finding f{.kind = FindingKind::kUnexplained,
            .about = About::kPredictions,
            .text = fmt::format("{} of the time is GPU delays that no rule explains; predictions "
                                "keep them as they are",
                                FormatPercent(share)),
            .where = {},
            .time = time / static_cast<int64_t>(steps),
            .share = share,
            .fix = "record on a GPU that nothing else uses, with all streams of the program"};
  if (longest.valid()) {
    const TaskId next = graph.task(longest).lane_next;
    f.where = fmt::format("longest ({}) on {}{}", FormatTime(most),
                          LaneTitle(graph, graph.task(longest).lane),
                          next.valid() ? fmt::format(" before {}", graph.TaskName(next)) : "");
  }
  return f;
}

}  // namespace daydream
