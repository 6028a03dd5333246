// Rules I1, I2: host work belongs to the step in which it starts, GPU work to the step in which its
// call starts. The period of a step runs from the end of the last GPU work of the step before to
// the end of its own last GPU work: the CPU's step marks say little while the CPU runs ahead.
#include <algorithm>

#include "graph/builder.h"

namespace daydream {
namespace {

// Steps as the graph knows them. Work after the last mark gets a step of its own that is not
// counted, so that it does not stretch the last real one.
std::vector<Instant> AddSteps(Builder& b) {
  std::vector<Instant> begins;
  const std::vector<Step>& steps = b.report.steps.steps;
  if (b.report.steps.measured() < 2) {
    b.graph.AddStep({.label = steps.empty() ? "window" : steps.front().label});
    return {Instant::Min()};
  }
  for (const Step& step : steps) {
    begins.push_back(begins.empty() ? Instant::Min() : step.begin);
    b.graph.AddStep({.label = step.label, .measured = step.use == StepUse::kMeasured});
  }
  begins.push_back(steps.back().end);
  b.graph.AddStep({.label = "(after the last step)", .measured = false});
  return begins;
}

uint16_t StepAt(const std::vector<Instant>& begins, Instant t) {
  auto it = std::upper_bound(begins.begin(), begins.end(), t);
  return static_cast<uint16_t>(it - begins.begin() - 1);
}

void RecordPeriods(Builder& b) {
  size_t n = b.graph.steps().size();
  std::vector<Instant> gpu_end(n, Instant::Min()), host_end(n, Instant::Min());
  Instant first = Instant::AtNs(INT64_MAX), last = Instant::Min();
  for (size_t i = 0; i < b.graph.size(); ++i) {
    const Task& task = b.graph.task(TaskId(i));
    Instant end = b.task_end[i];
    first = std::min(first, task.recorded_start);
    last = std::max(last, end);
    std::vector<Instant>& ends = IsGpu(task.kind) ? gpu_end : host_end;
    ends[task.step] = std::max(ends[task.step], end);
  }
  b.report.window = last - first;
  if (n == 1) {
    b.graph.mutable_step(0).recorded_period = last - first;
    return;
  }
  auto end_of = [&](size_t i) { return gpu_end[i] > Instant::Min() ? gpu_end[i] : host_end[i]; };
  for (size_t i = 1; i < n; ++i) {
    if (end_of(i) == Instant::Min() || end_of(i - 1) == Instant::Min()) continue;
    b.graph.mutable_step(i).recorded_period = end_of(i) - end_of(i - 1);
  }
}

}  // namespace

void AssignSteps(Builder& b) {
  std::vector<Instant> begins = AddSteps(b);
  for (size_t lane = 0; lane < b.graph.lanes().size(); ++lane) {
    bool stream = b.graph.lane(LaneId(lane)).lane.kind == LaneKind::kStream;
    if (stream) continue;
    for (TaskId t = b.graph.lane(LaneId(lane)).first; t.valid(); t = b.graph.task(t).lane_next) {
      b.graph.mutable_task(t).step = StepAt(begins, b.Start(t));
    }
  }
  for (size_t lane = 0; lane < b.graph.lanes().size(); ++lane) {
    if (b.graph.lane(LaneId(lane)).lane.kind != LaneKind::kStream) continue;
    uint16_t step = 0;
    for (TaskId t = b.graph.lane(LaneId(lane)).last; t.valid(); t = b.graph.task(t).lane_prev) {
      uint32_t op = b.op_of_task.size() > t.index() ? b.op_of_task[t.index()] : Builder::kNone;
      if (op != Builder::kNone && b.ops[op].call.valid()) {
        step = b.graph.task(b.ops[op].call).step;
      } else if (op != Builder::kNone) {
        step = StepAt(begins, b.ops[op].start);
      }
      b.graph.mutable_task(t).step = step;  // delays belong to the operation they delay
    }
  }
  RecordPeriods(b);
}

}  // namespace daydream
