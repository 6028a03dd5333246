#include "simulator/ranks/joint_replay.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace daydream {
namespace {

constexpr int kMostRounds = 64;

struct RankExtent {
  Instant first, last;
};

RankExtent ExtentOf(const JointGraph& joint, size_t rank, const Timeline& timeline) {
  RankExtent e{Instant{std::numeric_limits<int64_t>::max()}, Instant{}};
  for (TaskId t : joint.task[rank]) {
    if (!t.valid() || joint.graph.task(t).removed) continue;
    e.first = std::min(e.first, timeline.start[t.index()]);
    e.last = std::max(e.last, timeline.end[t.index()]);
  }
  if (e.first > e.last) e.first = e.last;
  return e;
}

using Intervals = std::vector<std::pair<Instant, Instant>>;

// Sorted, without overlaps.
Intervals Union(Intervals in) {
  std::sort(in.begin(), in.end());
  Intervals out;
  for (const auto& [begin, end] : in) {
    if (end <= begin) continue;
    if (!out.empty() && begin <= out.back().second) {
      out.back().second = std::max(out.back().second, end);
    } else {
      out.emplace_back(begin, end);
    }
  }
  return out;
}

Duration Length(const Intervals& in) {
  Duration sum;
  for (const auto& [begin, end] : in) sum += end - begin;
  return sum;
}

// Of `what`, the part that lies in none of `other`; both as Union() gives them.
Duration Outside(const Intervals& what, const Intervals& other) {
  Duration covered;
  size_t j = 0;
  for (const auto& [begin, end] : what) {
    while (j < other.size() && other[j].second <= begin) ++j;
    for (size_t k = j; k < other.size() && other[k].first < end; ++k) {
      covered += std::min(end, other[k].second) - std::max(begin, other[k].first);
    }
  }
  return Length(what) - covered;
}

// What made the rank's own cycle as long as it is; its parts sum to it.
BoundBy OwnPath(const JointGraph& alone, size_t rank, const Timeline& timeline,
                const RankExtent& extent) {
  TaskId last;
  for (TaskId t : alone.task[rank]) {
    if (!t.valid() || alone.graph.task(t).removed) continue;
    if (timeline.end[t.index()] == extent.last) last = t;
  }
  if (!last.valid()) return {};
  std::vector<PathSegment> path = CriticalPath(alone.graph, timeline, last);
  for (PathSegment& s : path) s.begin = std::max(s.begin, extent.first);
  std::erase_if(path, [](const PathSegment& s) { return s.end <= s.begin; });
  return SumByResource(path);
}

// Mean period of the steps that the rank recorded; none when fewer than two count.
std::optional<Duration> StepOfRank(const JointGraph& joint, size_t rank, const Graph& graph,
                                   const Timeline& timeline) {
  const auto counted = std::count_if(graph.steps().begin(), graph.steps().end(),
                                     [](const GraphStep& s) { return s.measured; });
  if (counted < 2) return std::nullopt;
  Timeline own;
  own.start.resize(graph.size()), own.end.resize(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const TaskId t = joint.task[rank][i];
    if (!t.valid()) continue;
    own.start[i] = timeline.start[t.index()];
    own.end[i] = timeline.end[t.index()];
  }
  return StepTime(graph, own);
}

class Replayer {
 public:
  // `repeated`: what FindPeriod() plays.
  Replayer(const JointGraph& joint, std::span<const Graph* const> graphs, const Plan& plan,
           const Plan& repeated)
      : joint_(joint), graphs_(graphs), plan_(plan), repeated_(repeated) {
    for (const Task& t : joint.graph.tasks()) {
      duration_.push_back(t.duration);
      gap_.push_back(t.gap);
    }
  }

  JointReplay Run() {
    JointReplay out;
    out.timeline = plan_.Run(duration_, gap_);
    out.ranks.resize(graphs_.size());
    RankExtent all{Instant{std::numeric_limits<int64_t>::max()}, Instant{}};
    for (size_t r = 0; r < graphs_.size(); ++r) {
      const RankExtent e = ExtentOf(joint_, r, out.timeline);
      out.ranks[r].span = e.last - e.first;
      all.first = std::min(all.first, e.first), all.last = std::max(all.last, e.last);
    }
    out.window = all.last - all.first;
    Account(out);
    FindPeriod(out);
    return out;
  }

 private:
  void Account(JointReplay& out) const {
    std::vector<Intervals> collectives(graphs_.size()), work(graphs_.size());
    for (size_t r = 0; r < graphs_.size(); ++r) {
      RankAccount& account = out.ranks[r];
      for (size_t i = 0; i < joint_.task[r].size(); ++i) {
        const TaskId t = joint_.task[r][i], arrival = joint_.arrival[r][i];
        if (!t.valid() || joint_.graph.task(t).removed) continue;
        const Task& task = joint_.graph.task(t);
        const Instant start = out.timeline.start[t.index()], end = out.timeline.end[t.index()];
        if (task.kind == TaskKind::kCollective) {
          const Instant came = arrival.valid() ? out.timeline.start[arrival.index()] : start;
          collectives[r].emplace_back(came, end);
          account.wait += start - came;
          account.transfer += end - start;
        } else if (IsGpu(task.kind)) {
          work[r].emplace_back(start, end);
        } else if (IsHost(task.kind)) {
          account.host += task.duration + task.gap;
        }
      }
      const Intervals busy = Union(std::move(work[r]));
      account.compute = Length(busy);
      account.exposed = Outside(Union(std::move(collectives[r])), busy);
    }
    CountLast(out);
  }

  // The first of those that arrive last; who is early waits.
  void CountLast(JointReplay& out) const {
    std::vector<char> met(joint_.graph.size(), 0);
    for (TaskId m : joint_.meeting) {
      if (m.valid()) met[m.index()] = 1;
    }
    std::vector<int64_t> latest(joint_.graph.size(), -1);
    std::vector<size_t> who(joint_.graph.size(), 0);
    for (const Edge& e : joint_.graph.edges()) {
      if (e.rule != Rule::kCollective || met[e.to.index()] == 0) continue;
      const int64_t arrival = out.timeline.start[e.from.index()].ns;
      if (arrival <= latest[e.to.index()]) continue;
      latest[e.to.index()] = arrival;
      who[e.to.index()] = RankOfLane(e.from);
    }
    for (TaskId m : joint_.meeting) {
      if (m.valid() && latest[m.index()] >= 0 && who[m.index()] < out.ranks.size()) {
        ++out.ranks[who[m.index()]].last;
      }
    }
    const size_t n = out.ranks.size();
    out.waits.assign(n, std::vector<Duration>(n + 1));
    for (const Edge& e : joint_.graph.edges()) {
      if (e.rule != Rule::kCollective || met[e.to.index()] == 0) continue;
      const size_t waits = RankOfLane(e.from);
      const Duration wait = out.timeline.start[e.to.index()] - out.timeline.start[e.from.index()];
      // Later than all that were recorded is a Ghost.
      const bool ghost = out.timeline.start[e.to.index()].ns > latest[e.to.index()];
      if (waits < n) out.waits[waits][ghost ? n : std::min(who[e.to.index()], n)] += wait;
    }
  }

  size_t RankOfLane(TaskId t) const {
    return static_cast<size_t>(joint_.graph.lane(joint_.graph.task(t).lane).lane.rank);
  }

  // Each rank begins again where its window ends, so who is ahead waits more each round, until all
  // take as long as the slowest. Where Ghosts are all that a rank has for peers, they begin again
  // when it does.
  void FindPeriod(JointReplay& out) {
    const size_t n = graphs_.size();
    std::vector<Duration> begin, ends(n), before;
    for (TaskId o : joint_.origin) begin.push_back(joint_.graph.task(o).duration);
    const std::vector<Duration> base = begin;
    std::vector<RankExtent> first;
    for (size_t r = 0; r < n; ++r) first.push_back(ExtentOf(joint_, r, out.timeline));
    out.settled = false;
    for (int round = 0; round < kMostRounds && !out.settled; ++round) {
      for (size_t i = 0; i < joint_.origin.size(); ++i) {
        duration_[joint_.origin[i].index()] = begin[i];
      }
      const Timeline t = repeated_.Run(duration_, gap_);
      Duration grown, least = Duration::Max();
      for (size_t r = 0; r < n; ++r) {
        // How far behind its begin the rank ends, and how far behind the origin its window begins.
        const Duration lead = first[r].first - Instant{base[r].ns};
        ends[r] = ExtentOf(joint_, r, t).last - Instant{} - lead;
        grown = std::max(grown, ends[r] - begin[r]);
        least = std::min(least, ends[r] - begin[r]);
      }
      out.settled = round > 0 && grown == least;
      out.period = grown;
      for (size_t r = 0; r < n; ++r) begin[r] = ends[r];
      begin[n] += grown;
      // Only differences matter: keep the numbers small.
      const Duration common = *std::min_element(begin.begin(), begin.end());
      for (Duration& b : begin) b -= common;
    }
  }

  const JointGraph& joint_;
  std::span<const Graph* const> graphs_;
  const Plan &plan_, &repeated_;
  std::vector<Duration> duration_, gap_;
};

// Ghosts say when somebody came in this window; in the next one nobody knows. Without their edges,
// or nothing where there are none, or nobody else to wait for.
std::optional<Graph> WithoutGhosts(const JointGraph& joint) {
  const auto ghostly = [&](const Edge& e) { return e.from == joint.origin.back(); };
  const std::span<const Edge> edges = joint.graph.edges();
  if (joint.task.size() < 2 || std::none_of(edges.begin(), edges.end(), ghostly)) {
    return std::nullopt;
  }
  Graph graph = joint.graph;
  std::erase_if(graph.mutable_edges(), ghostly);
  return graph;
}

}  // namespace

absl::StatusOr<JointReplay> ReplayRanks(const JointGraph& joint,
                                        std::span<const Graph* const> graphs) {
  DD_ASSIGN_OR_RETURN(const Plan plan, Plan::Make(joint.graph));
  std::optional<Plan> repeated;
  if (const std::optional<Graph> graph = WithoutGhosts(joint); graph.has_value()) {
    DD_ASSIGN_OR_RETURN(repeated, Plan::Make(*graph));
  }
  JointReplay out = Replayer(joint, graphs, plan, repeated ? *repeated : plan).Run();
  // Alone: the same without the edges that wait for others.
  JointGraph alone = joint;
  std::erase_if(alone.graph.mutable_edges(),
                [](const Edge& e) { return e.rule == Rule::kCollective; });
  DD_ASSIGN_OR_RETURN(const Timeline t, Simulate(alone.graph, {.blockers = true}));
  for (size_t r = 0; r < graphs.size(); ++r) {
    const RankExtent e = ExtentOf(alone, r, t);
    out.ranks[r].own_cycle = e.last - e.first;
    out.ranks[r].own_path = OwnPath(alone, r, t, e);
    out.ranks[r].own_step = StepOfRank(alone, r, *graphs[r], t).value_or(out.ranks[r].own_cycle);
  }
  return out;
}

Duration RecordedStepTime(const JointGraph& joint, std::span<const Graph* const> graphs,
                          const Timeline& timeline) {
  Duration sum;
  int64_t ranks = 0;
  for (size_t r = 0; r < graphs.size(); ++r) {
    const std::optional<Duration> step = StepOfRank(joint, r, *graphs[r], timeline);
    if (!step.has_value()) continue;
    sum += *step;
    ++ranks;
  }
  return ranks == 0 ? Duration{} : sum / ranks;
}

}  // namespace daydream
