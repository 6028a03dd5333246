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

  // Of the graph and of those copies of which only durations and gaps were set.
  static constexpr uint64_t kStructure = 1;

  // A copy of the graph as it is, which shares its facts. May be called from several threads.
  // O(tasks + edges); where a copy came back of which only times were set, O(what was set).
  Copy Make();
  // The same of an edited copy. O(its tasks + edges).
  Copy MakeOf(const Graph& graph);

 private:
  void Keep(Graph* graph);
  // One with that structure, or one with another; null: none came back.
  std::unique_ptr<Graph> Spare(bool of_structure);

  const Graph& graph_;
  const std::shared_ptr<GraphFacts> facts_ = std::make_shared<GraphFacts>();
  std::mutex mutex_;
  std::vector<std::unique_ptr<Graph>> spare_;
};

}  // namespace daydream
