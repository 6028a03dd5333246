#include "report/predict/causes.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/step_windows.h"
#include "report/windows.h"
#include "simulator/lone_step.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

constexpr size_t kMostPlayers = 48;
// The lag of an edge that is switched off: it never decides.
constexpr Duration kOff = Duration::Ns(-(int64_t{1} << 60));
// The step of an inserted task that is switched off: it marks no step's begin or end.
constexpr uint16_t kNoStep = 0xffff;

struct Delta {
  TaskId task;
  Duration duration, gap;
};

struct Switch {
  size_t edge;  // of the work graph
  Duration off, on;
};

// One cause, as what there is to switch.
struct Player {
  std::string what;
  CauseKind kind = CauseKind::kOptimization;
  std::string opt;
  Duration gpu, host;  // over all steps that count
  std::vector<Delta> deltas;
  std::vector<TaskId> inserted;
  std::vector<Switch> edges;
  bool moved = false;
  Duration twice;  // sum of its effects in both orders
  bool switches() const { return !deltas.empty() || !inserted.empty() || !edges.empty(); }
};

using EdgeKey = std::tuple<uint32_t, uint32_t, Rule, Anchor, Anchor>;
EdgeKey KeyOf(const Edge& e) {
  return {e.from.value, e.to.value, e.rule, e.from_anchor, e.to_anchor};
}

struct KeyedEdge {
  EdgeKey key;
  int64_t lag;
  size_t index;
  bool operator<(const KeyedEdge& o) const { return std::tie(key, lag) < std::tie(o.key, o.lag); }
};

// Edges of two graphs that differ, each list sorted.
struct EdgeDifference {
  std::vector<KeyedEdge> before, after;
};

// Edits drop edges, change them where they stand, and add others at the end: most are found side by
// side, behind at most this many that were dropped together.
constexpr size_t kDroppedTogether = 64;

EdgeDifference Differ(std::span<const Edge> before, std::span<const Edge> after) {
  std::vector<KeyedEdge> a, b;  // that were not found side by side
  const auto keyed = [](std::span<const Edge> edges, size_t i) {
    return KeyedEdge{KeyOf(edges[i]), edges[i].lag.ns, i};
  };
  const auto same = [&](size_t i, size_t j) {
    return i < before.size() && j < after.size() && before[i].lag == after[j].lag &&
           KeyOf(before[i]) == KeyOf(after[j]);
  };
  size_t i = 0, j = 0;
  while (i < before.size() && j < after.size()) {
    if (same(i, j)) {
      ++i, ++j;
      continue;
    }
    size_t dropped = same(i + 1, j + 1) ? kDroppedTogether : 1;
    while (dropped < kDroppedTogether && !same(i + dropped, j)) ++dropped;
    if (dropped < kDroppedTogether) {
      for (; dropped > 0; --dropped) a.push_back(keyed(before, i++));
    } else {
      a.push_back(keyed(before, i++));
      b.push_back(keyed(after, j++));
    }
  }
  for (; i < before.size(); ++i) a.push_back(keyed(before, i));
  for (; j < after.size(); ++j) b.push_back(keyed(after, j));
  std::stable_sort(a.begin(), a.end());
  std::stable_sort(b.begin(), b.end());
  EdgeDifference d;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(d.before));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(d.after));
  return d;
}

// StepTime() with the marks of the tasks.
Duration StepTimeOf(const Graph& graph, std::span<const StepMark> marks, const LaunchCalls& calls,
                    const Timeline& timeline) {
  if (graph.steps().size() <= 1) return StepTime(graph, timeline);
  std::vector<Duration> periods;
  for (const StepWindow& window : StepWindows(graph, marks, calls, timeline.start, timeline.end)) {
    periods.push_back(window.length());
  }
  return StepTimeOf(graph.steps(), std::span(periods).subspan(1));
}

class Game {
 public:
  explicit Game(const CauseQuestion& q)
      : q_(q),
        before_(*q.before),
        own_(*q.before),
        copy_((q.copies != nullptr ? q.copies : &own_)->MakeOf(*q.after)),
        work_(*copy_) {
    const std::vector<size_t> counted = CountedSteps(before_);
    counts_.assign(std::max<size_t>(before_.steps().size(), 1), counted.empty());
    for (size_t s : counted) counts_[s] = true;
    ReadJournals();
    FindValues();
    FindEdges();
    LumpTheSmallest();
  }

  std::vector<CauseShare> Play() {
    const Duration all = q_.step_after - q_.step_before;
    size_t playing = 0;
    for (const Player& p : players_) playing += p.switches() || p.moved;
    if (playing <= 1) return Shares(OnlyPlayer(), all);
    plan_ = MakePlan();
    if (lone_) plan_.reset();  // its rounds are what is played
    if (plan_.has_value()) {
      durations_.resize(work_.size());
      gaps_.resize(work_.size());
      marks_.reserve(work_.size());
      for (const Task& task : work_.tasks()) marks_.push_back(StepMarkOf(task));
      calls_.emplace(work_);
    }
    SwitchAll(false);
    const std::optional<Duration> none = Step();
    if (!none.has_value()) return Shares(JointPlayer(), all);
    PlayInOrder(*none, false);
    PlayInOrder(*none, true);
    // Places on lanes are those of the outcome; what they change is not switched.
    Duration rest = all * 2;
    for (const Player& p : players_) rest -= p.twice;
    players_[Mover()].twice += rest;
    return Shares(std::nullopt, all);
  }

 private:
  size_t PlayerFor(std::string_view what, CauseKind kind, std::string_view opt) {
    for (size_t i = 0; i < players_.size(); ++i) {
      const Player& p = players_[i];
      if (p.what == what && p.kind == kind && p.opt == opt) return i;
    }
    players_.push_back({.what = std::string(what), .kind = kind, .opt = std::string(opt)});
    return players_.size() - 1;
  }

  size_t JointPlayer() { return PlayerFor("order and waiting change", CauseKind::kJoint, ""); }

  size_t OnlyPlayer() {
    for (size_t i = 0; i < players_.size(); ++i) {
      if (players_[i].switches() || players_[i].moved) return i;
    }
    return players_.empty() ? JointPlayer() : 0;
  }

  // Who answers for what cannot be switched: the one cause that moved tasks, or all together.
  size_t Mover() {
    size_t mover = players_.size();
    for (size_t i = 0; i < players_.size(); ++i) {
      if (!players_[i].moved) continue;
      if (mover != players_.size()) return JointPlayer();
      mover = i;
    }
    return mover == players_.size() ? JointPlayer() : mover;
  }

  void ReadJournals() {
    last_.assign(work_.size(), kNobody);
    std::vector<bool> seen(work_.size(), false);
    for (const CauseJournal& journal : q_.journals) {
      std::vector<uint32_t> player;
      for (const Editor::Cause& c : journal.causes) {
        player.push_back(
            static_cast<uint32_t>(PlayerFor(c.what, CauseKind::kOptimization, journal.opt)));
      }
      for (const Editor::Edit& e : journal.edits) {
        Player& p = players_[player[e.cause]];
        last_[e.task.index()] = player[e.cause];
        p.moved |= e.moved;
        if (e.duration.ns != 0 || e.gap.ns != 0) {
          p.deltas.push_back({e.task, e.duration, e.gap});
          AddWork(p, e);
        }
        bool inserted = e.task.index() >= before_.size() && !seen[e.task.index()];
        if (inserted) p.inserted.push_back(e.task);
        seen[e.task.index()] = true;
      }
      for (const Editor::EdgeEdit& e : journal.edge_edits) {
        edge_player_[{e.from.value, e.to.value, e.rule}] = player[e.cause];
      }
    }
  }

  // Work of steps that count. That of modelled lanes (loader workers) belongs to neither side.
  void AddWork(Player& p, const Editor::Edit& e) const {
    const Task& task = work_.task(e.task);
    if (task.step >= counts_.size() || !counts_[task.step]) return;
    LaneKind kind = work_.lane(task.lane).lane.kind;
    if (kind == LaneKind::kStream) p.gpu += e.duration + e.gap;
    if (kind == LaneKind::kThread) p.host += e.duration + e.gap;
  }

  // Sets the work graph to the recorded values and finds what the journals do not explain.
  void FindValues() {
    values_.resize(work_.size());  // what the journals explain, first
    for (const Player& p : players_) {
      for (const Delta& d : p.deltas) {
        values_[d.task.index()].duration += d.duration;
        values_[d.task.index()].gap += d.gap;
      }
    }
    std::vector<Delta> unexplained;
    for (size_t i = 0; i < work_.size(); ++i) {
      TaskId t(i);
      Task& task = work_.mutable_task(t);
      Value base = i < before_.size() ? ValueOf(before_.task(t)) : Value{};
      Value end = ValueOf(task);
      Duration duration = end.duration - base.duration - values_[i].duration;
      Duration gap = end.gap - base.gap - values_[i].gap;
      if (duration.ns != 0 || gap.ns != 0) unexplained.push_back({t, duration, gap});
      if (i < before_.size() && !before_.task(t).removed) task.removed = false;
      values_[i] = {base.duration, base.gap, std::min({base.gap, end.gap, Duration{}})};
    }
    if (!unexplained.empty()) players_[JointPlayer()].deltas = std::move(unexplained);
    inserted_step_.resize(work_.size() - before_.size());
    for (size_t i = before_.size(); i < work_.size(); ++i) {
      inserted_step_[i - before_.size()] = work_.task(TaskId(i)).step;
    }
  }

  void FindEdges() {
    EdgeDifference d = Differ(before_.edges(), q_.after->edges());
    auto now = d.after.begin();
    recorded_edges_ = work_.edges().size();
    for (const KeyedEdge& was : d.before) {
      while (now != d.after.end() && now->key < was.key) ++now;
      if (now != d.after.end() && now->key == was.key) {
        AddSwitch(now->index, Duration::Ns(was.lag), Duration::Ns(now->lag));
        now->index = SIZE_MAX;
        ++now;
        continue;
      }
      work_.AddEdge(before_.edges()[was.index]);
      AddSwitch(work_.edges().size() - 1, Duration::Ns(was.lag), kOff);
    }
    for (const KeyedEdge& e : d.after) {
      if (e.index != SIZE_MAX) AddSwitch(e.index, kOff, Duration::Ns(e.lag));
    }
  }

  void AddSwitch(size_t edge, Duration off, Duration on) {
    const Edge& e = work_.edges()[edge];
    uint32_t player = kNobody;
    if (auto it = edge_player_.find({e.from.value, e.to.value, e.rule}); it != edge_player_.end()) {
      player = it->second;
    }
    if (player == kNobody) player = last_[e.to.index()];
    if (player == kNobody) player = last_[e.from.index()];
    size_t at = player == kNobody ? JointPlayer() : player;
    players_[at].edges.push_back({edge, off, on});
  }

  void LumpTheSmallest() {
    if (players_.size() <= kMostPlayers) return;
    auto size = [](const Player& p) {
      return std::max(std::llabs(p.gpu.ns), std::llabs(p.host.ns));
    };
    std::stable_sort(players_.begin(), players_.end(),
                     [&](const Player& a, const Player& b) { return size(a) > size(b); });
    Player rest{.what = fmt::format("[{} others]", players_.size() - kMostPlayers + 1)};
    rest.kind = CauseKind::kJoint;
    for (size_t i = kMostPlayers - 1; i < players_.size(); ++i) {
      Player& p = players_[i];
      rest.gpu += p.gpu;
      rest.host += p.host;
      rest.moved |= p.moved;
      rest.deltas.insert(rest.deltas.end(), p.deltas.begin(), p.deltas.end());
      rest.inserted.insert(rest.inserted.end(), p.inserted.begin(), p.inserted.end());
      rest.edges.insert(rest.edges.end(), p.edges.begin(), p.edges.end());
    }
    players_.resize(kMostPlayers - 1);
    players_.push_back(std::move(rest));
  }

  // Lanes that may reorder have no plan. Edges that are gone can contradict the new places: then
  // they stay away all along.
  std::optional<Plan> MakePlan() {
    for (const GraphLane& lane : work_.lanes()) {
      if (lane.order != LaneOrder::kFixed) return std::nullopt;
    }
    auto plan = Plan::Make(work_);
    if (plan.ok()) return *std::move(plan);
    work_.mutable_edges().resize(recorded_edges_);
    for (Player& p : players_) {
      std::erase_if(p.edges, [&](const Switch& s) { return s.edge >= recorded_edges_; });
    }
    plan = Plan::Make(work_);
    return plan.ok() ? std::optional(*std::move(plan)) : std::nullopt;
  }

  void SwitchAll(bool on) {
    for (const Player& p : players_) {
      for (const Switch& s : p.edges) work_.mutable_edges()[s.edge].lag = on ? s.on : s.off;
    }
    for (size_t i = 0; i < work_.size(); ++i) Show(TaskId(i));
    for (size_t i = before_.size(); i < work_.size(); ++i) ShowStep(TaskId(i), false);
  }

  void Show(TaskId t) {
    const Value& v = values_[t.index()];
    const Duration duration = std::max(v.duration, Duration{});
    const Duration gap = std::max(v.gap, v.least_gap);
    if (plan_.has_value()) {
      durations_[t.index()] = duration;
      gaps_[t.index()] = gap;
    } else {
      work_.mutable_task(t).duration = duration;
      work_.mutable_task(t).gap = gap;
    }
  }

  void ShowStep(TaskId inserted, bool on) {
    if (lone_) return;  // a round has no place for what is in no step
    Task& task = work_.mutable_task(inserted);
    task.step = on ? inserted_step_[inserted.index() - before_.size()] : kNoStep;
    if (plan_.has_value()) marks_[inserted.index()].step = task.step;
  }

  void Turn(const Player& p, bool on) {
    for (const Delta& d : p.deltas) {
      Value& v = values_[d.task.index()];
      v.duration += on ? d.duration : -d.duration;
      v.gap += on ? d.gap : -d.gap;
      Show(d.task);
    }
    for (TaskId t : p.inserted) ShowStep(t, on);
    for (const Switch& s : p.edges) work_.mutable_edges()[s.edge].lag = on ? s.on : s.off;
  }

  std::optional<Duration> Step() {
    if (plan_.has_value()) {
      plan_->Run(durations_, gaps_, work_.edges(), timeline_);
      return StepTimeOf(work_, marks_, *calls_, timeline_);
    }
    auto timeline = Simulate(work_);
    if (!timeline.ok()) return std::nullopt;
    return StepTime(work_, *timeline);
  }

  // From all off to all on, and all off again.
  void PlayInOrder(Duration none, bool backwards) {
    Duration last = none;
    auto left = std::ranges::count_if(players_, &Player::switches);
    for (size_t k = 0; k < players_.size(); ++k) {
      Player& p = players_[backwards ? players_.size() - 1 - k : k];
      if (!p.switches()) continue;
      Turn(p, true);
      // Both orders end with all that can be switched on.
      std::optional<Duration> played = --left == 0 ? all_on_ : std::nullopt;
      if (!played.has_value()) played = Step();
      if (left == 0) all_on_ = played;
      const Duration step = played.value_or(last);
      p.twice += step - last;
      last = step;
    }
    for (const Player& p : players_) Turn(p, false);
  }

  // Half of what each got in two orders; rounding is carried along, so that the sum is exact. `one`
  // gets everything when given.
  std::vector<CauseShare> Shares(std::optional<size_t> one, Duration all) {
    const int64_t steps = std::count(counts_.begin(), counts_.end(), true);
    std::vector<CauseShare> out;
    int64_t so_far = 0, given = 0;
    for (size_t i = 0; i < players_.size(); ++i) {
      const Player& p = players_[i];
      so_far += p.twice.ns;
      const int64_t half = so_far >> 1;
      Duration delta = Duration::Ns(half - given);
      given = half;
      if (one.has_value()) delta = i == *one ? all : Duration{};
      if (delta.ns == 0 && p.gpu.ns == 0 && p.host.ns == 0) continue;
      out.push_back({p.what, p.kind, p.opt, delta, p.gpu / steps, p.host / steps});
    }
    auto size = [](const CauseShare& c) { return std::llabs(c.delta.ns); };
    std::stable_sort(out.begin(), out.end(),
                     [&](const CauseShare& a, const CauseShare& b) { return size(a) > size(b); });
    return out;
  }

  static constexpr uint32_t kNobody = 0xffffffff;
  struct Value {
    Duration duration, gap, least_gap;
  };
  // What the task takes in a replay.
  static Value ValueOf(const Task& t) { return t.removed ? Value{} : Value{t.duration, t.gap, {}}; }

  const CauseQuestion& q_;
  const Graph& before_;
  GraphCopies own_;
  const GraphCopies::Copy copy_;
  Graph& work_;
  const bool lone_ = LoneStepOf(work_).has_value();
  std::vector<bool> counts_;  // by step
  std::vector<Player> players_;
  std::vector<Value> values_;            // by task: with the causes that are on
  std::vector<uint32_t> last_;           // by task: the last cause that edited it
  std::vector<uint16_t> inserted_step_;  // by inserted task
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, Rule>, uint32_t> edge_player_;
  size_t recorded_edges_ = 0;  // edges of `after`; later ones are gone there
  std::optional<Plan> plan_;
  // With a plan, by task: what the next replay takes.
  std::vector<Duration> durations_, gaps_;
  std::vector<StepMark> marks_;
  std::optional<LaunchCalls> calls_;
  Timeline timeline_;
  std::optional<Duration> all_on_;  // the step with everything switched on
};

}  // namespace

std::string_view OptOf(const CauseShare& cause) {
  switch (cause.kind) {
    case CauseKind::kOptimization:
      break;
    case CauseKind::kJoint:
      return "(joint)";
    case CauseKind::kLearned:
      return "(learned)";
  }
  return cause.opt;
}

std::vector<CauseShare> ShareByCause(const CauseQuestion& question) {
  return Game(question).Play();
}

}  // namespace daydream
