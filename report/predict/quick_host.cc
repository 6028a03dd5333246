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

// By how much longer: less than nothing.
StepBatch::Longer LessOf(const Graph& graph, TaskId id) {
  const Task& t = graph.task(id);
  if (t.removed || !IsHost(t.kind)) return {id, {}, {}};
  const Duration gap = std::max(t.gap, Duration{}), time = t.duration + gap;
  if (time <= kMostAdded) return {id, -t.duration, -gap};
  const double left = 1 - kMostAdded.seconds() / time.seconds();
  return {id, t.duration.Scaled(left) - t.duration, gap.Scaled(left) - gap};
}

std::vector<int64_t> LessOfAll(const Graph& graph, const StepBatch& batch) {
  std::vector<int64_t> less(batch.reset_sums().size());
  for (size_t i = 0; i < graph.size(); ++i) {
    if (IsHost(graph.tasks()[i].kind)) batch.AddTo(less, LessOf(graph, TaskId(i)));
  }
  return less;
}

}  // namespace

QuickHost::QuickHost(const Graph& recorded, Replays& replays) : recorded_(recorded) {
  const Replays::Lent batch = replays.Batch(recorded);
  if (batch == nullptr) return;
  less_ = LessOfAll(recorded, *batch);
  step_ = batch->StepWith({}, less_);
}

std::optional<Duration> QuickHost::StepOf(const Graph& graph, Replays& replays,
                                          std::vector<StepBatch::Longer> longer) const {
  const Replays::Lent batch = replays.Batch(graph);
  if (batch == nullptr) return std::nullopt;
  if (graph.structure() == 0 || !step_) return batch->StepWith(longer, LessOfAll(graph, *batch));
  ForEachRetimed(graph, [&](TaskId t) {
    const StepBatch::Longer was = LessOf(recorded_, t), is = LessOf(graph, t);
    const StepBatch::Longer l = {t, is.duration - was.duration, is.gap - was.gap};
    if (l.duration != Duration{} || l.gap != Duration{}) longer.push_back(l);
  });
  return batch->StepWith(longer, less_);
}

}  // namespace daydream
