// Rules I1, I2: host work belongs to the step in which it starts, GPU work to the step in which its
// call starts. Periods are those of graph/step_windows.h: the CPU's step marks say little while the
// CPU runs ahead.
#include <algorithm>

#include "graph/builder.h"
#include "graph/step_windows.h"

namespace daydream {
namespace {

constexpr size_t kMostSteps = 60000;  // Task::step has 16 bits

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
    if (begins.size() == kMostSteps) {
      b.report.warnings.push_back(fmt::format("{} steps; those after the first {} are not counted",
                                              steps.size(), kMostSteps));
      begins.push_back(step.begin);
      b.graph.AddStep({.label = "(further steps)", .measured = false});
      return begins;
    }
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

// Lanes on which the GPU work of some step began.
void MarkLanes(Graph& graph, std::span<const Instant> start) {
  std::vector<TaskId> first(graph.steps().size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (!IsGpu(task.kind)) continue;
    TaskId& of_step = first[task.step];
    if (!of_step.valid() || start[i] < start[of_step.index()]) of_step = TaskId(i);
  }
  for (size_t l = 0; l < graph.lanes().size(); ++l)
    graph.mutable_lane(LaneId(l)).marks_steps = false;
  for (TaskId t : first) {
    if (t.valid()) graph.mutable_lane(graph.task(t).lane).marks_steps = true;
  }
}

void RecordPeriods(Builder& b) {
  size_t n = b.graph.steps().size();
  std::vector<Instant> start(b.graph.size());
  for (size_t i = 0; i < b.graph.size(); ++i) start[i] = b.Start(TaskId(i));
  b.report.window = *std::max_element(b.task_end.begin(), b.task_end.end()) -
                    *std::min_element(start.begin(), start.end());
  if (n == 1) {
    b.graph.mutable_step(0).recorded_period = b.report.window;
    return;
  }
  MarkLanes(b.graph, start);
  std::vector<StepWindow> windows = StepWindows(b.graph, start, b.task_end);
  for (size_t i = 1; i < n; ++i) b.graph.mutable_step(i).recorded_period = windows[i].length();
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
