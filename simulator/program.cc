#include "simulator/program.h"

#include <limits>
#include <numeric>

#include "graph/large_pages.h"
#include "graph/order.h"

namespace daydream {
namespace {

class Compiler {
 public:
  Compiler(const Graph& g, Program& p, std::span<const TaskId> watched)
      : g_(g), p_(p), into_(g), none_(2 * uint32_t(g.size())) {
    start_is_read_.resize(g.size());
    for (const Edge& e : g.edges()) {
      if (e.from_anchor == Anchor::kStart) start_is_read_[e.from.index()] = 1;
    }
    for (TaskId t : watched) start_is_read_[t.index()] = 1;
  }

  size_t TasksWithEdges() const {
    size_t tasks = 0;
    for (size_t i = 0; i < g_.size(); ++i) tasks += into_.begin[i] < into_.begin[i + 1];
    return tasks;
  }

  void AddRow(TaskId id) {
    const Task& t = g_.task(id);
    Row row{.task = id.value, .lane_and_flags = t.lane.value << Row::kLaneShift};
    Into into{.source = {none_, none_, none_}, .lag = {0, 0, 0}};
    std::array<uint32_t, 3> edges{};
    size_t used_starts = 0, used_ends = 0;
    starts_.clear();
    ends_.clear();
    for (uint32_t k = into_.begin[id.index()]; k < into_.begin[id.index() + 1]; ++k) {
      const uint32_t index = into_.edge[k];
      const Edge& e = g_.edges()[index];
      const bool to_start = e.to_anchor == Anchor::kStart;
      const bool small = e.lag.ns == static_cast<int32_t>(e.lag.ns);
      const Source source = SourceOf(e.from, e.from_anchor);
      if (small && (to_start ? used_starts < 2 : used_ends < 1)) {
        const size_t slot = to_start ? used_starts++ : 2 + used_ends++;
        into.source[slot] = source;
        into.lag[slot] = static_cast<int32_t>(e.lag.ns);
        edges[slot] = index;
      } else {
        (to_start ? starts_ : ends_).push_back({source, index, e.lag.ns});
      }
    }
    // The first task of a lane has nothing to overlap.
    if (t.overlaps && t.lane_prev.valid()) row.lane_and_flags |= Row::kOverlaps;
    if (t.removed) row.lane_and_flags |= Row::kRemoved;
    if (start_is_read_[id.index()] != 0) row.lane_and_flags |= Row::kStartIsRead;
    if (t.earliest.ns != 0 || !starts_.empty() || !ends_.empty()) {
      row.lane_and_flags |= Row::kMore;
      AddMore(t.earliest.ns);
    }
    if (used_starts + used_ends > 0) {
      row.lane_and_flags |= Row::kEdges;
      p_.into.push_back(into);
      p_.edge.push_back(edges);
    }
    p_.rows.push_back(row);
  }

 private:
  void AddMore(int64_t earliest) {
    More more{.earliest = earliest, .starts_begin = static_cast<uint32_t>(p_.more_edges.size())};
    p_.more_edges.insert(p_.more_edges.end(), starts_.begin(), starts_.end());
    more.ends_begin = static_cast<uint32_t>(p_.more_edges.size());
    p_.more_edges.insert(p_.more_edges.end(), ends_.begin(), ends_.end());
    more.ends_end = static_cast<uint32_t>(p_.more_edges.size());
    p_.more.push_back(more);
  }

  const Graph& g_;
  Program& p_;
  EdgesInto into_;
  const Source none_;
  std::vector<uint8_t> start_is_read_;
  std::vector<More::In> starts_, ends_;
};

}  // namespace

absl::StatusOr<Program> Program::Compile(const Graph& graph, std::span<const TaskId> watched,
                                         Rows rows) {
  constexpr size_t kMostTasks = size_t{1} << 30;  // a Source and its anchor fit into 32 bits
  constexpr size_t kMostLanes = size_t{1} << (32 - Row::kLaneShift);
  if (graph.size() > kMostTasks || graph.lanes().size() >= kMostLanes) {
    return FailedPrecondition("too large to replay: {} tasks on {} lanes", graph.size(),
                              graph.lanes().size());
  }
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.order != LaneOrder::kFixed) {
      return FailedPrecondition("a plan needs lanes of fixed order");
    }
  }
  std::vector<TaskId> order;
  if (rows == Rows::kInTime) order = OrderInTime(graph);
  if (order.size() != graph.size()) {
    DD_ASSIGN_OR_RETURN(order, EvaluationOrder(graph));
  }
  Program p;
  p.tasks = graph.size();
  p.lanes = graph.lanes().size();
  ReserveLarge(p.rows, p.tasks);
  Compiler compiler(graph, p, watched);
  ReserveLarge(p.into, compiler.TasksWithEdges());
  ReserveLarge(p.edge, compiler.TasksWithEdges());
  for (TaskId t : order) compiler.AddRow(t);
  return p;
}

}  // namespace daydream
