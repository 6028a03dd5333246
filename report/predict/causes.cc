#include "report/predict/causes.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/step_windows.h"
#include "report/predict/edge_difference.h"
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

}  // namespace

// The causes of a scenario, switched on and off.
class CauseGame {
 public:
  explicit CauseGame(const CauseQuestion& q)
      : q_(&q),
        before_(*q.before),
        own_(*q.before),
        copy_((q.copies != nullptr ? q.copies : &own_)->MakeOf(*q.after)),
        work_(*copy_) {
    const std::vector<size_t> counted = CountedSteps(before_);
    counts_.assign(std::max<size_t>(before_.steps().size(), 1), counted.empty());
    for (size_t s : counted) counts_[s] = true;
    ReadJournals();
    FindTimes();
    FindPlaces();
    FindEdges();
    LumpTheSmallest();
  }

  // The same of another question about a graph of the same shape. False: it has to be made anew.
  bool Take(const CauseQuestion& q) {
    const auto same_lane = [](const GraphLane& x, const GraphLane& y) {
      return x.lane.kind == y.lane.kind;
    };
    if (lone_ || (planned_ && !all_switch_)) return false;
    if (!std::ranges::equal(q.after->lanes(), work_.lanes(), same_lane)) return false;
    q_ = &q;
    players_.clear();
    edge_player_.clear();
    all_on_.reset();
    ReadJournals();
    FindTimes();
    for (const Switch& s : switches_) Attribute(s);
    LumpTheSmallest();
    return true;
  }

  std::vector<CauseShare> Play() {
    const Duration all = q_->step_after - q_->step_before;
    size_t playing = 0;
    for (const Player& p : players_) playing += p.switches() || p.moved;
    if (playing <= 1) return Shares(OnlyPlayer(), all);
    if (!planned_) FindPlan();
    SwitchAll(false);
    // With a plan all that is off is as recorded, whatever is asked.
    if (!none_.has_value()) none_ = Step();
    if (!none_.has_value()) return Shares(JointPlayer(), all);
    std::vector<CauseShare> shares = PlayBothOrders(all, q_->by_opt);
    if (!q_->by_opt || !AnyHidden(shares)) return shares;
    for (Player& p : players_) p.twice = {};
    return PlayBothOrders(all, false);
  }

 private:
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

  void FindPlan() {
    planned_ = true;
    plan_ = MakePlan();
    if (lone_) plan_.reset();  // its rounds are what is played
    all_switch_ &= plan_.has_value();
    if (!plan_.has_value()) return;
    durations_.resize(work_.size());
    gaps_.resize(work_.size());
    marks_.reserve(work_.size());
    for (const Task& task : work_.tasks()) marks_.push_back(StepMarkOf(task));
    calls_.emplace(work_);
  }

  std::vector<CauseShare> PlayBothOrders(Duration all, bool by_opt) {
    PlayInOrder(*none_, false, by_opt);
    PlayInOrder(*none_, true, by_opt);
    // Places on lanes are those of the outcome; what they change is not switched.
    Duration rest = all * 2;
    for (const Player& p : players_) rest -= p.twice;
    players_[Mover()].twice += rest;
    return Shares(std::nullopt, all);
  }

  // Whether an optimization has no share when its causes are switched together, but might where
  // each is by itself.
  bool AnyHidden(std::span<const CauseShare> shares) const {
    const Player* last = nullptr;
    for (const Player& p : players_) {
      if (!p.switches()) continue;
      const bool several = last != nullptr && SameOpt(*last, p);
      last = &p;
      if (several && std::ranges::find(shares, p.opt, &CauseShare::opt) == shares.end())
        return true;
    }
    return false;
  }
  static bool SameOpt(const Player& a, const Player& b) {
    return a.kind == b.kind && a.opt == b.opt;
  }

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
    for (const CauseJournal& journal : q_->journals) {
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
    const Task& task = q_->after->task(e.task);
    if (task.step >= counts_.size() || !counts_[task.step]) return;
    LaneKind kind = work_.lane(task.lane).lane.kind;
    if (kind == LaneKind::kStream) p.gpu += e.duration + e.gap;
    if (kind == LaneKind::kThread) p.host += e.duration + e.gap;
  }

  // What each task takes with all causes off, and what the journals do not explain.
  void FindTimes() {
    values_.assign(work_.size(), {});  // what the journals explain, first
    for (const Player& p : players_) {
      for (const Delta& d : p.deltas) {
        values_[d.task.index()].duration += d.duration;
        values_[d.task.index()].gap += d.gap;
      }
    }
    std::vector<Delta> unexplained;
    for (size_t i = 0; i < work_.size(); ++i) {
      TaskId t(i);
      Value base = i < before_.size() ? ValueOf(before_.task(t)) : Value{};
      Value end = ValueOf(q_->after->task(t));
      Duration duration = end.duration - base.duration - values_[i].duration;
      Duration gap = end.gap - base.gap - values_[i].gap;
      if (duration.ns != 0 || gap.ns != 0) unexplained.push_back({t, duration, gap});
      values_[i] = {base.duration, base.gap, std::min({base.gap, end.gap, Duration{}})};
    }
    if (!unexplained.empty()) players_[JointPlayer()].deltas = std::move(unexplained);
  }

  void FindPlaces() {
    for (size_t i = 0; i < before_.size(); ++i) {
      if (!before_.task(TaskId(i)).removed) work_.mutable_task(TaskId(i)).removed = false;
    }
    inserted_step_.resize(work_.size() - before_.size());
    for (size_t i = before_.size(); i < work_.size(); ++i) {
      inserted_step_[i - before_.size()] = work_.task(TaskId(i)).step;
    }
  }

  void FindEdges() {
    EdgeDifference d = Differ(before_.edges(), q_->after->edges());
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
    switches_.push_back({edge, off, on});
    Attribute(switches_.back());
  }

  void Attribute(const Switch& edge) {
    const Edge& e = work_.edges()[edge.edge];
    uint32_t player = kNobody;
    if (auto it = edge_player_.find({e.from.value, e.to.value, e.rule}); it != edge_player_.end()) {
      player = it->second;
    }
    if (player == kNobody) player = last_[e.to.index()];
    if (player == kNobody) player = last_[e.from.index()];
    size_t at = player == kNobody ? JointPlayer() : player;
    players_[at].edges.push_back(edge);
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
    all_switch_ = false;
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

  // From all off to all on, and all off again. `by_opt`: causes of one optimization, which stand
  // together, are played together, and the last of them gets what all of them do.
  void PlayInOrder(Duration none, bool backwards, bool by_opt) {
    std::vector<Player*> turn;
    for (Player& p : players_) {
      if (p.switches()) turn.push_back(&p);
    }
    if (backwards) std::ranges::reverse(turn);
    Duration last = none;
    for (size_t k = 0; k < turn.size(); ++k) {
      Turn(*turn[k], true);
      const bool end = k + 1 == turn.size();
      if (!end && by_opt && SameOpt(*turn[k], *turn[k + 1])) continue;
      // Both orders end with all that can be switched on.
      std::optional<Duration> played = end ? all_on_ : std::nullopt;
      if (!played.has_value()) played = Step();
      if (end) all_on_ = played;
      const Duration step = played.value_or(last);
      turn[k]->twice += step - last;
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

  const CauseQuestion* q_;
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
  std::optional<Duration> none_, all_on_;  // the step with nothing and everything switched on
  std::vector<Switch> switches_;           // of all players
  bool planned_ = false;
  bool all_switch_ = true;  // with the plan, all that causes changed can be switched
};

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
  return CauseGame(question).Play();
}

CauseGames::CauseGames() = default;
CauseGames::~CauseGames() = default;

std::vector<CauseShare> CauseGames::Share(const CauseQuestion& question) {
  std::unique_ptr<CauseGame> kept;
  {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) kept = std::move(spare_.back());
    if (!spare_.empty()) spare_.pop_back();
  }
  if (kept == nullptr || !kept->Take(question)) kept = std::make_unique<CauseGame>(question);
  std::vector<CauseShare> shares = kept->Play();
  std::lock_guard lock(mutex_);
  spare_.push_back(std::move(kept));
  return shares;
}

}  // namespace daydream
