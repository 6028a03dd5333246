#include "report/predict/quick_host.h"

#include <algorithm>
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

// What becomes of the sums of `batch` by the same of all tasks; `each` is told those.
template <class Each>
std::vector<int64_t> LessOfAll(const Graph& graph, const StepBatch& batch, Each each) {
  std::vector<int64_t> less(batch.reset_sums().size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (!IsHost(t.kind) || t.removed) continue;
    const StepBatch::Longer of = LessOf(TaskId(i), t.duration, t.gap);
    batch.AddTo(less, of);
    each(of);
  }
  return less;
}

}  // namespace

QuickHost::QuickHost(const Graph& recorded, Replays& replays) : recorded_(recorded) {
  const Replays::Lent batch = replays.Batch(recorded);
  if (batch == nullptr) return;
  of_.resize(recorded.size());
  const auto keep = [&](const StepBatch::Longer& of) { of_[of.task.index()] = of; };
  less_ = LessOfAll(recorded, *batch, keep);
  step_ = batch->StepWith({}, less_);
}

std::optional<Duration> QuickHost::StepOf(const Graph& graph, Replays& replays,
                                          std::vector<StepBatch::Longer> longer) const {
  const Replays::Lent batch = replays.Batch(graph);
  if (batch == nullptr) return std::nullopt;
  if (graph.structure() == 0 || !step_) {
    return batch->StepWith(longer, LessOfAll(graph, *batch, [](const StepBatch::Longer&) {}));
  }
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
