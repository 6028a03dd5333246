#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "simulator/program.h"

namespace daydream {
namespace {

// Earlier than every instant of a replay, far from the limits of int64 (graph/validate.cc).
constexpr int64_t kNever = Instant::Min().ns;

// What the tasks of a lane so far mean for the next one: it may begin at `clock`, or at `start`
// when it overlaps. Selected without a branch.
struct LaneState {
  int64_t bound[2] = {kNever, kNever};
};

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

// Follows lanes, each as far as nothing that it waits for is missing.
class LaneRuns {
 public:
  LaneRuns(const Graph& graph, Instant* start, Instant* end)
      : graph_(graph), into_(graph), start_(start), end_(end), at_(graph.lanes().size()) {
    waiting_.assign(graph.size(), kNoLane);
    std::fill_n(end, graph.size(), Instant::AtNs(kMissing));
  }

  bool Run() {
    for (size_t l = at_.size(); l-- > 0;) {
      const TaskId first = graph_.lanes()[l].first;
      at_[l].task = first;
      if (!first.valid()) continue;
      Arrive(at_[l]);
      open_.push_back(static_cast<uint32_t>(l));
    }
    while (!open_.empty()) {
      const uint32_t lane = open_.back();
      open_.pop_back();
      Follow(lane);
    }
    return done_ == graph_.size();
  }

 private:
  static constexpr uint32_t kNoLane = 0xffffffff;
  static constexpr int64_t kMissing = std::numeric_limits<int64_t>::min();

  // Where a lane stands: at a task whose edges up to `edge` were looked at.
  struct At {
    TaskId task;
    uint32_t edge = 0;
    int64_t begin = 0, until = kNever;
    LaneState lane;
    uint32_t next_waiting = kNoLane;  // lane for the same task
  };

  void Arrive(At& at) {
    const Task& t = graph_.task(at.task);
    const bool beside = t.overlaps && t.lane_prev.valid();
    at.edge = into_.begin[at.task.index()];
    at.begin = std::max({at.lane.bound[beside ? 1 : 0], t.earliest.ns, int64_t{0}});
    at.until = kNever;
  }

  void Follow(uint32_t lane) {
    At& at = at_[lane];
    const std::span<const Edge> edges = graph_.edges();
    while (true) {
      const size_t i = at.task.index();
      for (const uint32_t last = into_.begin[i + 1]; at.edge < last; ++at.edge) {
        const Edge& e = edges[into_.edge[at.edge]];
        const size_t from = e.from.index();
        if (end_[from].ns == kMissing) {
          at.next_waiting = std::exchange(waiting_[from], lane);
          return;
        }
        int64_t& bound = e.to_anchor == Anchor::kStart ? at.begin : at.until;
        bound =
            std::max(bound, (e.from_anchor == Anchor::kStart ? start_ : end_)[from].ns + e.lag.ns);
      }
      const Task& t = graph_.task(at.task);
      at.until = std::max(at.until, at.begin + (t.removed ? 0 : t.duration.ns));
      start_[i].ns = at.begin;
      end_[i].ns = at.until;
      at.lane.bound[0] = std::max(at.lane.bound[0], at.until + (t.removed ? 0 : t.gap.ns));
      at.lane.bound[1] = at.begin;
      ++done_;
      for (uint32_t other = waiting_[i]; other != kNoLane; other = at_[other].next_waiting) {
        open_.push_back(other);
      }
      if (!t.lane_next.valid()) return;
      at.task = t.lane_next;
      Arrive(at);
    }
  }

  const Graph& graph_;
  const EdgesInto into_;
  Instant* const start_;
  Instant* const end_;
  std::vector<At> at_;             // by lane
  std::vector<uint32_t> waiting_;  // by task: the last lane that waits for it
  std::vector<uint32_t> open_;     // lanes to be followed
  size_t done_ = 0;
};

}  // namespace

bool EvaluateOnce(const Graph& graph, std::span<Instant> start, std::span<Instant> end) {
  DD_CHECK(start.size() == graph.size() && end.size() == graph.size());
  return LaneRuns(graph, start.data(), end.data()).Run();
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
