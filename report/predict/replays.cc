#include "report/predict/replays.h"

#include <algorithm>
#include <utility>

namespace daydream {

const Plan* Replays::plan() {
  std::lock_guard lock(planning_);
  if (!planned_) {
    if (auto plan = Plan::Of(graph_); plan.ok()) plan_ = *std::move(plan);
    planned_ = true;
  }
  return plan_.has_value() ? &*plan_ : nullptr;
}

Replays::Lent Replays::Batch(const Graph& graph) {
  if (plan() == nullptr) return nullptr;
  const bool gap_below = std::ranges::any_of(graph.retimed(), [&](TaskId t) {
    return graph.task(t).gap < Duration{} && graph_.task(t).gap >= Duration{};
  });
  if (gap_below) return nullptr;
  std::unique_ptr<StepBatch> batch;
  {
    std::lock_guard lock(planning_);
    if (first_ == nullptr) {
      MakeRoom();
      batch = std::make_unique<StepBatch>(StepBatch::Make(graph_, *plan_));
      first_ = batch.get();
    }
  }
  if (batch == nullptr) {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (batch == nullptr) {
    MakeRoom();
    batch = std::make_unique<StepBatch>(first_->Another());
  }
  // What others are made like stays, even where memory ends here.
  Lent lent{batch.release(), GiveBack{this}};
  lent->Follow(graph);
  return lent;
}

absl::StatusOr<Timeline> Replays::Replay(const Graph& graph, const Graph& played,
                                         SimulateOptions options) {
  const Plan* made = plan();
  const bool fits = made != nullptr && (&graph == &played || Plan::SameStructure(graph, played));
  return fits ? absl::StatusOr<Timeline>(made->Run(graph, options)) : Simulate(graph, options);
}

void Replays::MakeRoom() {
  std::lock_guard lock(mutex_);
  spare_.reserve(++made_);
}

void Replays::Keep(StepBatch* batch) {
  std::lock_guard lock(mutex_);
  spare_.emplace_back(batch);
}

}  // namespace daydream
