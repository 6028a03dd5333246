#include <algorithm>
#include <vector>

#include "graph/bgl.h"
#include "graph/order.h"

namespace daydream {
namespace {

// Depth-first search that keeps the tree edge into each vertex and the first edge that closes a
// cycle.
class CycleVisitor : public boost::default_dfs_visitor {
 public:
  CycleVisitor(std::vector<uint32_t>& parent, std::vector<TaskId>& cycle)
      : parent_(parent), cycle_(cycle) {}

  template <class E>
  void tree_edge(const E& e, const BglGraph&) {
    parent_[e.target] = e.source;
  }

  template <class E>
  void back_edge(const E& e, const BglGraph&) {
    if (!cycle_.empty()) return;
    for (uint32_t v = e.source; v != e.target; v = parent_[v]) cycle_.push_back(TaskId(v));
    cycle_.push_back(TaskId(e.target));
    std::reverse(cycle_.begin(), cycle_.end());
  }

 private:
  std::vector<uint32_t>& parent_;
  std::vector<TaskId>& cycle_;
};

}  // namespace

std::vector<TaskId> FindCycle(const Graph& graph) {
  std::vector<uint32_t> parent(graph.size());
  std::vector<TaskId> cycle;
  boost::depth_first_search(BglGraph(graph), boost::visitor(CycleVisitor(parent, cycle)));
  return cycle;
}

}  // namespace daydream
