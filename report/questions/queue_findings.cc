#include "report/questions/queue_findings.h"

#include <algorithm>

#include "base/median.h"
#include "graph/call_kinds.h"
#include "report/text/format.h"

namespace daydream {
namespace {

// A launch that takes so long, and so many times what it usually takes, while so many operations of
// its stream wait. Rule Q2 reads the depth of the queue from the same.
constexpr Duration kLongLaunch = Duration::Us(30);
constexpr int64_t kTimesAsLong = 4;
constexpr uint32_t kDeep = 512;
constexpr double kLargeShare = 0.05;

bool IsLaunch(CallKind kind) { return kind == CallKind::kLaunch || kind == CallKind::kMemset; }

}  // namespace

std::optional<Finding> FindingOfQueues(const Graph& graph, const std::vector<bool>& counts,
                                       size_t steps, Duration step) {
  std::vector<TaskId> call_of(graph.size());
  std::vector<bool> waited(graph.size());  // for room, before it did something else
  for (const Edge& e : graph.edges()) {
    if (e.rule == Rule::kLaunch) call_of[e.to.index()] = e.from;
    if (e.rule != Rule::kQueue || graph.task(e.to).kind != TaskKind::kWait) continue;
    const TaskId work = graph.task(e.to).lane_next;
    if (work.valid()) waited[work.index()] = true;
  }
  std::vector<std::vector<Duration>> lengths;  // by NameId
  for (TaskId call : call_of) {
    if (!call.valid()) continue;
    const Task& task = graph.task(call);
    if (lengths.size() <= task.name.index()) lengths.resize(task.name.index() + 1);
    lengths[task.name.index()].push_back(task.duration);
  }
  std::vector<Duration> usual;
  usual.reserve(lengths.size());
  for (std::vector<Duration>& l : lengths) {
    usual.push_back(l.empty() ? Duration{} : Ranked(l, l.size() / 4));
  }
  CallKinds kinds(graph);
  Duration waits;
  uint64_t calls = 0;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kStream) continue;
    std::vector<TaskId> ops;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) ops.push_back(t);
    size_t started = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      const TaskId call = call_of[ops[i].index()];
      if (!call.valid() || !IsLaunch(kinds.Of(graph.task(call).name))) continue;
      const Task& task = graph.task(call);
      const Instant end = task.recorded_start + task.duration;
      while (started < i && graph.task(ops[started]).recorded_start <= end) ++started;
      const Duration own = usual[task.name.index()];
      if (i - started < kDeep || task.duration <= kLongLaunch) continue;
      if (task.duration <= own * kTimesAsLong || waited[call.index()]) continue;
      if (task.step >= counts.size() || !counts[task.step]) continue;
      waits += task.duration - own;
      ++calls;
    }
  }
  const Duration of_step = waits / static_cast<int64_t>(std::max<size_t>(steps, 1));
  if (step <= Duration{} || of_step <= step.Scaled(kLargeShare)) return std::nullopt;
  return Finding{
      .kind = FindingKind::kQueue,
      .about = About::kPredictions,
      .text = fmt::format("{} launches, {} of a step, are far longer than usual while hundreds of "
                          "operations wait: the launch queue was full, but not where its depth "
                          "says; records are lost, the clock of the GPU is off, or "
                          "streams share a queue in a way that was not found",
                          FormatCount(calls), FormatTime(of_step)),
      .where = {},
      .time = of_step,
      .share = of_step.seconds() / step.seconds(),
      .fix =
          "record again: as it is, these waits count as work of the host, which no faster GPU "
          "makes shorter"};
}

}  // namespace daydream
