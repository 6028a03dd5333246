#include "report/predict/graph_copies.h"

#include <algorithm>
#include <utility>

namespace daydream {

std::unique_ptr<Graph> GraphCopies::Spare(bool of_structure) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(spare_, [&](const std::unique_ptr<Graph>& g) {
    return (g->structure() == kStructure) == of_structure;
  });
  if (found == spare_.end()) return nullptr;
  std::unique_ptr<Graph> spare = std::move(*found);
  spare_.erase(found);
  return spare;
}

GraphCopies::Copy GraphCopies::Make() {
  Copy copy;
  if (std::unique_ptr<Graph> retimed = Spare(true); retimed != nullptr) {
    retimed->UndoRetimed(graph_);
    copy = {retimed.release(), GiveBack{this}};
  } else {
    copy = MakeOf(graph_);
    copy->NameStructure(kStructure);
  }
  copy->ShareFacts(facts_);
  return copy;
}

GraphCopies::Copy GraphCopies::MakeOf(const Graph& graph) {
  std::unique_ptr<Graph> copy = Spare(false);
  if (copy == nullptr) copy = Spare(true);
  if (copy == nullptr) {
    copy = std::make_unique<Graph>();
    // Room for what most transforms insert; where it does not do, the vectors grow.
    copy->Reserve(graph_.size() + graph_.size() / 8,
                  graph_.edges().size() + graph_.edges().size() / 8);
  }
  *copy = graph;
  return {copy.release(), GiveBack{this}};
}

void GraphCopies::Keep(Graph* graph) {
  std::unique_ptr<Graph> copy(graph);
  copy->ShareFacts(nullptr);  // what they hold may be large
  std::lock_guard lock(mutex_);
  spare_.push_back(std::move(copy));
}

}  // namespace daydream
