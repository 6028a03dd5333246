#include "report/predict/graph_copies.h"

namespace daydream {

GraphCopies::Copy GraphCopies::Make() {
  Copy copy = MakeOf(graph_);
  copy->ShareFacts(facts_);
  return copy;
}

GraphCopies::Copy GraphCopies::MakeOf(const Graph& graph) {
  std::unique_ptr<Graph> copy;
  {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      copy = std::move(spare_.back());
      spare_.pop_back();
    }
  }
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
  std::lock_guard lock(mutex_);
  spare_.push_back(std::move(copy));
}

}  // namespace daydream
