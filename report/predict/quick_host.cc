#include "report/predict/quick_host.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/retimed.h"

namespace daydream {

bool HostIsStretched(const Graph& graph) {
  const Trace* trace = graph.tables().trace.get();
  return trace != nullptr && trace->provenance.importer == "kineto";
}

namespace {

// By how much longer a task of the host takes: less than nothing.
StepBatch::Longer LessOf(TaskId id, Duration duration, Duration gap) {
  gap = std::max(gap, Duration{});
  const Duration time = duration + gap;
  if (time <= kMostAdded) return {id, -duration, -gap};
  const double left = 1 - kMostAdded.seconds() / time.seconds();
  return {id, duration.Scaled(left) - duration, gap.Scaled(left) - gap};
}

// The same of all tasks, and what becomes of the sums of `batch`.
struct LessOfTasks {
  std::vector<StepBatch::Longer> of;
  std::vector<int64_t> sums;
  LessOfTasks(const Graph& graph, const StepBatch& batch)
      : of(graph.size()), sums(batch.reset_sums().size()) {
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& t = graph.tasks()[i];
      if (!IsHost(t.kind) || t.removed) continue;
      of[i] = LessOf(TaskId(i), t.duration, t.gap);
      batch.AddTo(sums, of[i]);
    }
  }
};

}  // namespace

QuickHost::QuickHost(const Graph& recorded, Replays& replays) : recorded_(recorded) {
  const Replays::Lent batch = replays.Batch(recorded);
  if (batch == nullptr) return;
  LessOfTasks less(recorded, *batch);
  of_ = std::move(less.of);
  less_ = std::move(less.sums);
  step_ = batch->StepWith({}, less_);
}

std::optional<Duration> QuickHost::StepOf(const Graph& graph, Replays& replays,
                                          std::vector<StepBatch::Longer> longer) const {
  const Replays::Lent batch = replays.Batch(graph);
  if (batch == nullptr) return std::nullopt;
  if (graph.structure() == 0 || !step_)
    return batch->StepWith(longer, LessOfTasks(graph, *batch).sums);
  const auto tasks = RetimedOf(recorded_, graph);
  longer.reserve(longer.size() + tasks->size());
  for (const Retimed& t : *tasks) {
    if (!IsHost(t.kind) || t.removed) continue;
    const StepBatch::Longer& was = of_[t.task.index()];
    const StepBatch::Longer is = LessOf(t.task, t.duration, t.gap);
    const StepBatch::Longer l = {t.task, is.duration - was.duration, is.gap - was.gap};
    if (l.duration != Duration{} || l.gap != Duration{}) longer.push_back(l);
  }
  return batch->StepWith(longer, less_);
}

}  // namespace daydream
