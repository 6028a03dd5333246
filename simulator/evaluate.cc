#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "simulator/lane_runs.h"
#include "simulator/program.h"

namespace daydream {
namespace {

// Where durations, gaps and lags come from.
struct FromGraph {
  std::span<const Task> tasks;
  const Edge* edges;
  const Program& p;
  int64_t duration(uint32_t t, uint32_t flags) const {
    return (flags & Row::kRemoved) != 0 ? 0 : tasks[t].duration.ns;
  }
  int64_t gap(uint32_t t, uint32_t flags) const {
    return (flags & Row::kRemoved) != 0 ? 0 : tasks[t].gap.ns;
  }
  int64_t lag(size_t into, size_t slot) const { return edges[p.edge[into][slot]].lag.ns; }
  int64_t lag(const More::In& in) const { return edges[in.edge].lag.ns; }
};

struct FromColumns {
  const Duration* durations;
  const Duration* gaps;
  const Program& p;
  int64_t duration(uint32_t t, uint32_t flags) const {
    return (flags & Row::kRemoved) != 0 ? 0 : durations[t].ns;
  }
  int64_t gap(uint32_t t, uint32_t flags) const {
    return (flags & Row::kRemoved) != 0 ? 0 : gaps[t].ns;
  }
  int64_t lag(size_t into, size_t slot) const { return p.into[into].lag[slot]; }
  int64_t lag(const More::In& in) const { return in.lag; }
};

struct FromColumnsAndEdges : FromColumns {
  const Edge* edges;
  int64_t lag(size_t into, size_t slot) const { return edges[p.edge[into][slot]].lag.ns; }
  int64_t lag(const More::In& in) const { return edges[in.edge].lag.ns; }
};

template <class Numbers>
void EvaluateWith(const Program& p, const Numbers& numbers, Instant* start, Instant* end) {
  Instant* const columns[2] = {start, end};
  auto at = [&](Source s) { return columns[s & 1][s >> 1].ns; };
  start[p.tasks] = end[p.tasks] = Instant::AtNs(kNever);
  std::vector<LaneState> lanes(p.lanes);
  const More* more = p.more.data();
  const More::In* more_edges = p.more_edges.data();
  size_t into = 0;
  for (const Row& row : p.rows) {
    const uint32_t flags = row.lane_and_flags;
    LaneState& lane = lanes[flags >> Row::kLaneShift];
    int64_t begin = std::max<int64_t>(lane.bound[flags & Row::kOverlaps], 0);
    int64_t until = kNever;
    if ((flags & Row::kEdges) != 0) {
      const Source* source = p.into[into].source;
      begin = std::max(begin, std::max(at(source[0]) + numbers.lag(into, 0),
                                       at(source[1]) + numbers.lag(into, 1)));
      until = at(source[2]) + numbers.lag(into, 2);
      ++into;
    }
    if ((flags & Row::kMore) != 0) [[unlikely]] {
      begin = std::max(begin, more->earliest);
      for (uint32_t k = more->starts_begin; k < more->ends_begin; ++k) {
        begin = std::max(begin, at(more_edges[k].source) + numbers.lag(more_edges[k]));
      }
      for (uint32_t k = more->ends_begin; k < more->ends_end; ++k) {
        until = std::max(until, at(more_edges[k].source) + numbers.lag(more_edges[k]));
      }
      ++more;
    }
    until = std::max(until, begin + numbers.duration(row.task, flags));
    start[row.task].ns = begin;
    end[row.task].ns = until;
    lane.bound[0] = std::max(lane.bound[0], until + numbers.gap(row.task, flags));
    lane.bound[1] = begin;
  }
}

}  // namespace

namespace {

// All tasks of a graph.
class AllTasks {
 public:
  explicit AllTasks(const Graph& graph) : graph_(graph), into_(graph) {}
  size_t size() const { return graph_.size(); }
  size_t lanes() const { return graph_.lanes().size(); }
  uint32_t First(size_t lane) const { return graph_.lanes()[lane].first.value; }
  uint32_t Next(uint32_t t) const { return graph_.task(TaskId(t)).lane_next.value; }
  LaneTask TaskAt(uint32_t t) const {
    const Task& task = graph_.task(TaskId(t));
    return {.beside = task.overlaps && task.lane_prev.valid(),
            .earliest = task.earliest.ns,
            .duration = task.removed ? 0 : task.duration.ns,
            .gap = task.removed ? 0 : task.gap.ns};
  }
  uint32_t EdgesBegin(uint32_t t) const { return into_.begin[t]; }
  LaneWait EdgeAt(uint32_t edge) const {
    const Edge& e = graph_.edges()[IndexOf(edge)];
    return {.from = e.from.value,
            .from_start = e.from_anchor == Anchor::kStart,
            .to_start = e.to_anchor == Anchor::kStart,
            .lag = e.lag.ns};
  }
  uint32_t IndexOf(uint32_t edge) const { return into_.edge[edge]; }  // in Graph::edges()

 private:
  const Graph& graph_;
  const EdgesInto into_;
};
static_assert(LaneRuns<AllTasks>::kNoTask == TaskId::None().value);

// The same with other numbers.
class AllTasksWith : public AllTasks {
 public:
  AllTasksWith(const Graph& graph, std::span<const Duration> duration,
               std::span<const Duration> gap, std::span<const Edge> edges)
      : AllTasks(graph), graph_(graph), duration_(duration), gap_(gap), edges_(edges) {}
  LaneTask TaskAt(uint32_t t) const {
    LaneTask task = AllTasks::TaskAt(t);
    const bool removed = graph_.task(TaskId(t)).removed;
    task.duration = removed ? 0 : duration_[t].ns;
    task.gap = removed ? 0 : gap_[t].ns;
    return task;
  }
  LaneWait EdgeAt(uint32_t edge) const {
    LaneWait wait = AllTasks::EdgeAt(edge);
    wait.lag = edges_[IndexOf(edge)].lag.ns;
    return wait;
  }

 private:
  const Graph& graph_;
  const std::span<const Duration> duration_, gap_;
  const std::span<const Edge> edges_;
};

}  // namespace

bool EvaluateOnce(const Graph& graph, std::span<Instant> start, std::span<Instant> end) {
  DD_CHECK(start.size() == graph.size() && end.size() == graph.size());
  const AllTasks tasks(graph);
  return LaneRuns(tasks, start.data(), end.data()).Run();
}

bool EvaluateOnce(const Graph& graph, std::span<Instant> start, std::span<Instant> end,
                  TasksOfSteps& steps) {
  DD_CHECK(start.size() == graph.size() && end.size() == graph.size());
  const AllTasks tasks(graph);
  return LaneRuns(tasks, start.data(), end.data()).Run([&](uint32_t t) {
    steps.Add(StepMarkOf(graph.task(TaskId(t))), start[t], end[t]);
  });
}

bool EvaluateOnce(const Graph& graph, std::span<const Duration> duration,
                  std::span<const Duration> gap, std::span<const Edge> edges,
                  std::span<Instant> start, std::span<Instant> end) {
  DD_CHECK(duration.size() == graph.size() && gap.size() == graph.size());
  DD_CHECK(edges.size() == graph.edges().size());
  DD_CHECK(start.size() == graph.size() && end.size() == graph.size());
  const AllTasksWith tasks(graph, duration, gap, edges);
  return LaneRuns(tasks, start.data(), end.data()).Run();
}

void Evaluate(const Program& p, const Graph& graph, std::span<Instant> start,
              std::span<Instant> end) {
  DD_CHECK(graph.size() == p.tasks && start.size() > p.tasks && end.size() > p.tasks);
  const Edge no_edge;  // rows without an edge read the lag of edge 0
  const Edge* edges = graph.edges().empty() ? &no_edge : graph.edges().data();
  EvaluateWith(p, FromGraph{graph.tasks(), edges, p}, start.data(), end.data());
}

void Evaluate(const Program& p, std::span<const Duration> duration, std::span<const Duration> gap,
              std::span<Instant> start, std::span<Instant> end) {
  DD_CHECK(duration.size() == p.tasks && gap.size() == p.tasks);
  DD_CHECK(start.size() > p.tasks && end.size() > p.tasks);
  EvaluateWith(p, FromColumns{duration.data(), gap.data(), p}, start.data(), end.data());
}

void Evaluate(const Program& p, std::span<const Duration> duration, std::span<const Duration> gap,
              std::span<const Edge> edges, std::span<Instant> start, std::span<Instant> end) {
  DD_CHECK(duration.size() == p.tasks && gap.size() == p.tasks);
  DD_CHECK(start.size() > p.tasks && end.size() > p.tasks);
  const Edge no_edge;
  const Edge* first = edges.empty() ? &no_edge : edges.data();
  EvaluateWith(p, FromColumnsAndEdges{{duration.data(), gap.data(), p}, first}, start.data(),
               end.data());
}

}  // namespace daydream
