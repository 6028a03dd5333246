// Copies of one graph to edit, one after another in the same memory: touching pages for the first
// time takes longer than replaying the tasks in them, so a copy that is done with leaves its memory
// to the next.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "graph/facts.h"
#include "graph/graph.h"

namespace daydream {

class GraphCopies {
  struct GiveBack {
    GraphCopies* home = nullptr;
    void operator()(Graph* graph) const { home->Keep(graph); }
  };

 public:
  using Copy = std::unique_ptr<Graph, GiveBack>;  // may not outlive the GraphCopies

  explicit GraphCopies(const Graph& graph) : graph_(graph) {}  // keeps a reference

  // A copy of the graph as it is, which shares its facts. May be called from several threads.
  // O(tasks + edges).
  Copy Make();
  // The same of an edited copy. O(its tasks + edges).
  Copy MakeOf(const Graph& graph);

 private:
  void Keep(Graph* graph);

  const Graph& graph_;
  const std::shared_ptr<GraphFacts> facts_ = std::make_shared<GraphFacts>();
  std::mutex mutex_;
  std::vector<std::unique_ptr<Graph>> spare_;
};

}  // namespace daydream
