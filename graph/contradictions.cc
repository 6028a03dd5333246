// Recorded times that contradict one another (clock skew, damaged files) can make the rules build a
// cycle. It is cut at its weakest edge, counted and reported; what no longer has a reason to start
// keeps its recorded instant.
#include <algorithm>
#include <optional>

#include "graph/builder.h"
#include "graph/order.h"

namespace daydream {
namespace {

// A trace with more contradictions than this is not worth repairing.
constexpr int kMostCuts = 200;

// How sure a rule is of its edges: guesses are cut before recorded facts.
int Strength(Rule rule) {
  switch (rule) {
    case Rule::kQueue:
      return 0;
    case Rule::kEventWait:
      return 1;
    case Rule::kHandOff:
      return 2;
    case Rule::kHostWait:
      return 3;
    case Rule::kLaunch:
      return 4;
    default:
      return 5;
  }
}

std::optional<size_t> WeakestEdge(const Graph& graph, const std::vector<TaskId>& cycle) {
  std::vector<TaskId> next(graph.size());
  for (size_t i = 0; i < cycle.size(); ++i) {
    next[cycle[i].index()] = cycle[(i + 1) % cycle.size()];
  }
  std::optional<size_t> weakest;
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge& e = graph.edges()[i];
    if (next[e.from.index()] != e.to) continue;
    if (!weakest || Strength(e.rule) < Strength(graph.edges()[*weakest].rule)) weakest = i;
  }
  return weakest;
}

}  // namespace

absl::Status CutContradictions(Builder& b) {
  int cuts = 0;
  while (!EvaluationOrder(b.graph).ok()) {
    std::optional<size_t> edge = WeakestEdge(b.graph, FindCycle(b.graph));
    if (!edge || ++cuts > kMostCuts) {
      return MakeStatus(
          absl::StatusCode::kDataLoss,
          {.code = "E0304",
           .what = "the recorded times contradict one another",
           .where = fmt::format("{}: {} dependencies dropped, and there are more",
                                b.trace.provenance.source, cuts),
           .why = "the file is damaged, or clocks of host and GPU do not belong together",
           .fix = "record again"});
    }
    std::vector<Edge>& edges = b.graph.mutable_edges();
    Task& task = b.graph.mutable_task(edges[*edge].to);
    if (edges[*edge].to_anchor == Anchor::kStart) {
      task.earliest = std::max(task.earliest, task.recorded_start);
    }
    edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(*edge));
  }
  if (cuts > 0) {
    b.report.warnings.push_back(fmt::format(
        "{} dependencies contradict one another in their times and were dropped", cuts));
  }
  return absl::OkStatus();
}

}  // namespace daydream
