#include "report/predict/known_shapes.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace daydream {
namespace {

constexpr size_t kKeptTasksOfShapes = 500'000;

}  // namespace

std::optional<KnownShapes::Played> KnownShapes::PlayAs(const std::shared_ptr<Shape>& shape,
                                                       const Graph& graph) {
  const Replays::Lent batch = shape->replays.Batch(*shape->graph);
  if (batch == nullptr) return std::nullopt;
  const std::optional<Duration> step = batch->StepOf(graph);
  if (!step.has_value()) return std::nullopt;
  return Played{*step, {batch->periods().begin(), batch->periods().end()}, shape};
}

std::vector<std::shared_ptr<KnownShapes::Shape>> KnownShapes::KeptOf(const Sizes& sizes) {
  std::lock_guard lock(mutex_);
  const auto seen = seen_.find(sizes);
  return seen == seen_.end() ? std::vector<std::shared_ptr<Shape>>() : seen->second.kept;
}

void KnownShapes::Keep(const Sizes& sizes, std::shared_ptr<Shape> shape) {
  std::lock_guard lock(mutex_);
  kept_tasks_ += sizes[0];
  seen_[sizes].kept.push_back(shape);
  ages_.emplace_front(sizes, std::move(shape));
  while (kept_tasks_ > kKeptTasksOfShapes) {
    const auto& [of, oldest] = ages_.back();
    std::erase(seen_[of].kept, oldest);
    kept_tasks_ -= of[0];
    ages_.pop_back();
  }
}

std::optional<KnownShapes::Played> KnownShapes::Play(const Graph& graph) {
  const Sizes sizes = {graph.size(), graph.edges().size(), graph.lanes().size()};
  if (sizes[0] > kKeptTasksOfShapes) return std::nullopt;
  for (const std::shared_ptr<Shape>& shape : KeptOf(sizes)) {
    auto played = PlayAs(shape, graph);
    if (!played.has_value()) continue;
    std::lock_guard lock(mutex_);
    seen_[sizes].misses = 0;
    const auto at = std::ranges::find(ages_, shape, [](const auto& age) { return age.second; });
    if (at != ages_.end()) ages_.splice(ages_.begin(), ages_, at);
    return played;
  }
  {  // A plan takes longer than a replay: less and less often one is made for nothing.
    std::lock_guard lock(mutex_);
    const size_t misses = seen_[sizes].misses++;
    if (misses == 0 || !std::has_single_bit(misses)) return std::nullopt;
  }
  auto shape = std::make_shared<Shape>(copies_.MakeOf(graph));
  auto played = PlayAs(shape, graph);
  if (played.has_value()) Keep(sizes, shape);
  return played;
}

}  // namespace daydream
