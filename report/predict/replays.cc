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

std::unique_ptr<StepBatch> Replays::TakeSpare(const Followed* followed) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(spare_, [&](const Spare& spare) {
    return followed == nullptr ||
           (spare.graph == followed->graph && spare.retimed.lock() == followed->retimed);
  });
  if (found == spare_.end()) return nullptr;
  std::unique_ptr<StepBatch> batch = std::move(found->batch);
  spare_.erase(found);
  return batch;
}

Replays::Lent Replays::Batch(const Graph& graph) {
  if (plan() == nullptr) return nullptr;
  Followed followed{&graph, RetimedOf(graph_, graph)};
  if (std::unique_ptr<StepBatch> batch = TakeSpare(&followed)) {
    batch->Reset();
    return {batch.release(), GiveBack{this, std::move(followed)}};
  }
  const bool gap_below = std::ranges::any_of(*followed.retimed, [](const Retimed& t) {
    return t.gap < Duration{} && t.gap_was >= Duration{};
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
  if (batch == nullptr) batch = TakeSpare(nullptr);
  if (batch == nullptr) {
    MakeRoom();
    batch = std::make_unique<StepBatch>(first_->Another());
  }
  // What others are made like stays, even where memory ends here.
  Lent lent{batch.release(), GiveBack{this, std::move(followed)}};
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

void Replays::Keep(StepBatch* batch, const Followed& followed) {
  std::lock_guard lock(mutex_);
  spare_.push_back({std::unique_ptr<StepBatch>(batch), followed.graph, followed.retimed});
}

}  // namespace daydream
