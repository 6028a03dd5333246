// What is known of each task once all of them are there is written in one pass over them: they are
// too many to be read once for each such thing.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/release.h"
#include "graph/builder.h"
#include "graph/large_pages.h"
#include "graph/lend_layers.h"
#include "graph/mapper.h"
#include "graph/step_windows.h"
#include "graph/times_of_tasks.h"
#include "graph/validate.h"

namespace daydream {
namespace {

void AddKernelTime(const Task& task, BuildReport& report) {
  if (!IsGpu(task.kind)) return;
  report.kernel_time += task.duration;
  if (task.layer.valid()) report.mapped_kernel_time += task.duration;
}

// What rules asked of tasks. Of operations is asked once more where layers are lent.
void ReleaseColumns(Builder& b) {
  Release(b.next_on_lane);
  Release(b.kind_of_task);
  if (std::ranges::any_of(b.report.steps.steps, &Step::labelled)) return;
  Release(b.ops_of_call);
  Release(b.ops);
  Release(b.stream_ops);
}

}  // namespace

absl::Status FinishTasks(Builder& b) {
  ReleaseColumns(b);
  std::optional<Mapper> mapper;
  if (!b.typical_lags()) mapper.emplace(b);  // else it is asked for its step time only
  TasksOfSteps tasks_of_steps(b.graph);
  TimesOfTasks times;
  const std::span<Task> tasks(&b.graph.mutable_task(TaskId(0)), b.graph.size());
  const std::span<const uint16_t> steps = b.step_of_task;
  for (size_t i = 0; i < tasks.size(); ++i) {
    Task& task = tasks[i];
    FetchToWrite(&task, kTasksAhead);
    task.step = steps[i];
    if (mapper) {
      mapper->Assign(TaskId(i), task);
      AddKernelTime(task, b.report);
    }
    times.Add(task);
    tasks_of_steps.Add(StepMarkOf(task), task.recorded_start, b.task_end[i]);
  }
  RecordPeriods(b, std::move(tasks_of_steps));
  Release(b.task_start);
  Release(b.task_end);
  if (mapper) {
    EstimateTransfers(b);
    LendLayers(b);
  }
  // What the rules do to ids and lanes hangs on no recorded time; tests look at it.
  if (!times.well() || !times.AreFarFromLimit(b.graph)) return ValidateButCycles(b.graph);
  DD_DCHECK(ValidateButCycles(b.graph).ok());
  return absl::OkStatus();
}

}  // namespace daydream
