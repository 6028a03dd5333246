#include "simulator/ranks/joint_replay.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "graph/validate.h"
namespace daydream {
namespace {

constexpr int kMostRounds = 64;
// Chosen: 36 years before the window; lags of at most as much do not come near int64's limits.
constexpr Duration kBeforeAll{-(int64_t{1} << 60)};

struct RankExtent {
  Instant first, last;
};

// `tasks`: those of the rank in `graph`.
RankExtent ExtentOf(const Graph& graph, std::span<const TaskId> tasks, const Timeline& timeline) {
  RankExtent e{Instant{std::numeric_limits<int64_t>::max()}, Instant{}};
  for (TaskId t : tasks) {
    if (!t.valid() || graph.task(t).removed) continue;
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
BoundBy OwnPath(const RankAlone& alone, const Timeline& timeline, const RankExtent& extent) {
  TaskId last;
  for (TaskId t : alone.task) {
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
// `tasks`: by task of `graph`, its task on `timeline`.
std::optional<Duration> StepOfRank(std::span<const TaskId> tasks, const Graph& graph,
                                   const Timeline& timeline) {
  const auto counted = std::count_if(graph.steps().begin(), graph.steps().end(),
                                     [](const GraphStep& s) { return s.measured; });
  if (counted < 2) return std::nullopt;
  Timeline own;
  own.start.resize(graph.size()), own.end.resize(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const TaskId t = tasks[i];
    if (!t.valid()) continue;
    own.start[i] = timeline.start[t.index()];
    own.end[i] = timeline.end[t.index()];
  }
  return StepTimeOf(graph.steps(), StepPeriodsBeside(graph, own));
}

bool Chooses(const Graph& graph, TaskId t) {
  return graph.lane(graph.task(t).lane).order != LaneOrder::kFixed;
}

// Plays the joint graph again and again, each time with other instants at which ranks begin.
class Rounds {
 public:
  static absl::StatusOr<Rounds> Make(const JointGraph& joint) {
    Rounds out;
    for (const GraphLane& lane : joint.graph.lanes()) {
      if (lane.order == LaneOrder::kFixed) continue;
      out.chooses_ = std::make_unique<Graph>(joint.graph);
      return out;
    }
    DD_ASSIGN_OR_RETURN(out.plan_, Plan::Make(joint.graph));
    out.duration_.reserve(joint.graph.size());
    out.gap_.reserve(joint.graph.size());
    for (const Task& t : joint.graph.tasks()) {
      out.duration_.push_back(t.duration);
      out.gap_.push_back(t.gap);
    }
    return out;
  }

  void Begin(TaskId origin, Duration at) {
    if (chooses_ != nullptr) {
      chooses_->mutable_task(origin).duration = at;
    } else {
      duration_[origin.index()] = at;
    }
  }

  absl::Status Run(Timeline& timeline) {
    if (chooses_ == nullptr) {
      plan_->Run(duration_, gap_, timeline);
      return absl::OkStatus();
    }
    DD_ASSIGN_OR_RETURN(timeline, Simulate(*chooses_));
    return absl::OkStatus();
  }

 private:
  std::optional<Plan> plan_;
  std::vector<Duration> duration_, gap_;
  std::unique_ptr<Graph> chooses_;  // with lanes that choose what goes next
};

class Replayer {
 public:
  Replayer(const JointGraph& joint, std::span<const Graph* const> graphs, Rounds& rounds)
      : joint_(joint), graphs_(graphs), rounds_(rounds) {}

  absl::StatusOr<JointReplay> Run() {
    JointReplay out;
    DD_RETURN_IF_ERROR(rounds_.Run(out.timeline));
    out.ranks.resize(graphs_.size());
    RankExtent all{Instant{std::numeric_limits<int64_t>::max()}, Instant{}};
    for (size_t r = 0; r < graphs_.size(); ++r) {
      const RankExtent e = ExtentOf(joint_.graph, joint_.task[r], out.timeline);
      out.ranks[r].span = e.last - e.first;
      if (out.ranks[r].span <= Duration{}) continue;  // nothing is left of it
      all.first = std::min(all.first, e.first), all.last = std::max(all.last, e.last);
    }
    out.window = std::max(all.last - all.first, Duration{});
    Account(out);
    DD_RETURN_IF_ERROR(FindPeriod(out));
    return out;
  }

 private:
  void Account(JointReplay& out) const {
    std::vector<Intervals> collectives(graphs_.size()), work(graphs_.size());
    const std::vector<Instant> met = MetAt(out.timeline);
    for (size_t r = 0; r < graphs_.size(); ++r) {
      RankAccount& account = out.ranks[r];
      for (size_t i = 0; i < joint_.task[r].size(); ++i) {
        const TaskId t = joint_.task[r][i], arrival = joint_.arrival[r][i];
        if (!t.valid()) continue;
        const Task& task = joint_.graph.task(t);
        if (task.removed || task.kind != TaskKind::kCollective) continue;
        const Instant start = out.timeline.start[t.index()], end = out.timeline.end[t.index()];
        const Instant came = arrival.valid() ? out.timeline.start[arrival.index()] : start;
        // What met its peers and stands behind others of its rank waits for nobody.
        const bool behind = !met.empty() && arrival.valid() && Chooses(joint_.graph, t);
        const Instant met_at = behind ? std::max(came, met[t.index()]) : start;
        collectives[r].emplace_back(behind ? start : came, end);
        account.wait += met_at - came;
        account.transfer += end - start;
      }
      for (size_t t = joint_.part[r].task; t < joint_.part[r].task_end; ++t) {
        const Task& task = joint_.graph.tasks()[t];
        if (task.removed || task.kind == TaskKind::kCollective) continue;
        if (IsGpu(task.kind)) work[r].emplace_back(out.timeline.start[t], out.timeline.end[t]);
        if (IsHost(task.kind)) account.host += task.duration + task.gap;
      }
      const Intervals busy = Union(std::move(work[r]));
      account.compute = Length(busy);
      account.exposed = Outside(Union(std::move(collectives[r])), busy);
    }
    CountLast(out);
  }

  // By transfer, when its Meeting was; only where lanes choose what goes next.
  std::vector<Instant> MetAt(const Timeline& timeline) const {
    std::vector<Instant> met;
    const bool chosen = std::ranges::any_of(joint_.graph.lanes(), [](const GraphLane& lane) {
      return lane.order != LaneOrder::kFixed;
    });
    if (!chosen) return met;
    met.resize(joint_.graph.size());
    for (const Edge& e : joint_.graph.edges()) {
      if (e.rule == Rule::kCollective) met[e.to.index()] = timeline.end[e.from.index()];
    }
    return met;
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
  absl::Status FindPeriod(JointReplay& out) {
    const size_t n = graphs_.size();
    std::vector<Duration> begin, ends(n), lead;
    for (TaskId o : joint_.origin) begin.push_back(joint_.graph.task(o).duration);
    for (size_t r = 0; r < n; ++r) {
      // How far behind the origin of the rank its window begins.
      lead.push_back(ExtentOf(joint_.graph, joint_.task[r], out.timeline).first -
                     Instant{begin[r].ns});
    }
    // Ghosts say when somebody came in this window; in the next one nobody knows. Of several ranks
    // they come before all.
    if (n > 1) begin[n] = kBeforeAll;
    out.settled = false;
    Timeline t;
    for (int round = 0; round < kMostRounds && !out.settled; ++round) {
      for (size_t i = 0; i < joint_.origin.size(); ++i) rounds_.Begin(joint_.origin[i], begin[i]);
      DD_RETURN_IF_ERROR(rounds_.Run(t));
      Duration grown, least = Duration::Max();
      for (size_t r = 0; r < n; ++r) {
        // How far behind its begin the rank ends.
        ends[r] = ExtentOf(joint_.graph, joint_.task[r], t).last - Instant{} - lead[r];
        grown = std::max(grown, ends[r] - begin[r]);
        least = std::min(least, ends[r] - begin[r]);
      }
      out.settled = round > 0 && grown == least;
      out.period = grown;
      for (size_t r = 0; r < n; ++r) begin[r] = ends[r];
      if (n == 1) begin[n] += grown;
      // Only differences matter: keep the numbers small.
      const Duration common = *std::min_element(begin.begin(), begin.begin() + (n == 1 ? 2 : n));
      for (size_t r = 0; r <= n; ++r) {
        if (begin[r] != kBeforeAll) begin[r] -= common;
      }
    }
    return absl::OkStatus();
  }

  const JointGraph& joint_;
  std::span<const Graph* const> graphs_;
  Rounds& rounds_;
};

// What the rank does when it waits for nobody.
absl::Status PlayAlone(const JointGraph& joint, size_t rank, const Graph& own,
                       RankAccount& account) {
  const RankAlone alone = TakeAlone(joint, rank);
  DD_ASSIGN_OR_RETURN(const Timeline t, Simulate(alone.graph, {.blockers = true}));
  const RankExtent e = ExtentOf(alone.graph, alone.task, t);
  account.own_cycle = e.last - e.first;
  account.own_path = OwnPath(alone, t, e);
  account.own_step = StepOfRank(alone.task, own, t).value_or(account.own_cycle);
  return absl::OkStatus();
}

}  // namespace

void InOrder(size_t count, const std::function<void(size_t)>& work) {
  for (size_t i = 0; i < count; ++i) work(i);
}

absl::StatusOr<JointReplay> ReplayRanks(const JointGraph& joint,
                                        std::span<const Graph* const> graphs,
                                        const ForEachRank& each) {
  DD_RETURN_IF_ERROR(FitsReplay(joint.graph));  // one rank after another may take what each does
  JointReplay out;
  {
    DD_ASSIGN_OR_RETURN(Rounds rounds, Rounds::Make(joint));
    DD_ASSIGN_OR_RETURN(out, Replayer(joint, graphs, rounds).Run());
  }
  std::vector<absl::Status> played(graphs.size());
  each(graphs.size(), [&](size_t r) { played[r] = PlayAlone(joint, r, *graphs[r], out.ranks[r]); });
  for (const absl::Status& s : played) DD_RETURN_IF_ERROR(s);
  return out;
}

Duration RecordedStepTime(const JointGraph& joint, std::span<const Graph* const> graphs,
                          const Timeline& timeline) {
  Duration sum;
  int64_t ranks = 0;
  for (size_t r = 0; r < graphs.size(); ++r) {
    const std::optional<Duration> step = StepOfRank(joint.task[r], *graphs[r], timeline);
    if (!step.has_value()) continue;
    sum += *step;
    ++ranks;
  }
  return ranks == 0 ? Duration{} : sum / ranks;
}

}  // namespace daydream
