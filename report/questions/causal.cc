#include "report/questions/causal.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "report/host_table.h"
#include "report/parallel.h"
#include "report/predict/graph_copies.h"
#include "report/predict/replays.h"
#include "report/stalls.h"
#include "report/summary.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "simulator/step_batch.h"

namespace daydream {
namespace {

constexpr double kBent = 0.1;    // above the straight line, as a share of all that can be gained
constexpr double kFlat = 0.005;  // of the step

// Names by which tasks of one family are told apart.
class Families {
 public:
  explicit Families(const Graph& graph) : graph_(graph), classes_(graph, GroupBy::kClass) {}

  void Add(TaskId t) {
    const Task& task = graph_.task(t);
    if (task.removed) return;
    const auto name = [&] { return std::string(graph_.TaskName(t)); };
    switch (task.kind) {
      case TaskKind::kKernel:
        Join(t, Family::kKernels, task.name.value, [&] { return classes_.Of(t); });
        break;
      case TaskKind::kCollective:
        Join(t, Family::kCollective, task.name.value, name);
        break;
      case TaskKind::kMemcpy:
      case TaskKind::kMemset:
        Join(t, Family::kCopies, task.name.value, name);
        break;
      case TaskKind::kCall:
        Join(t, Family::kCall, task.name.value, name);
        break;
      case TaskKind::kHost:
      case TaskKind::kData:
        if (IsHeldUp(graph_, t)) return;
        Join(t, Family::kHost, static_cast<uint32_t>(task.kind), [&] {
          return std::string(task.kind == TaskKind::kHost ? "host work" : "loader workers");
        });
        if (task.kind == TaskKind::kHost) AddParts(t);
        break;
      case TaskKind::kWait:
      case TaskKind::kDelay:
        return;
    }
    if (IsGpu(task.kind) && task.layer.valid()) {
      Join(t, Family::kLayer, task.layer.value,
           [&] { return GroupOf(graph_, t, GroupBy::kLayer); });
    }
  }

  std::vector<WorkGroup> Take() {
    std::vector<WorkGroup> out;
    for (auto& [key, tasks] : groups_) out.push_back({key.first, key.second, std::move(tasks)});
    const auto behind = std::find_if(out.begin(), out.end(),
                                     [](const WorkGroup& g) { return g.family > Family::kHost; });
    std::vector<WorkGroup> parts;
    for (auto& [name, group] : parts_) parts.push_back(std::move(group));
    out.insert(behind, std::make_move_iterator(parts.begin()),
               std::make_move_iterator(parts.end()));
    return out;
  }

 private:
  // `name()` is the same for all tasks of a family with this number.
  template <class Name>
  void Join(TaskId t, Family family, uint32_t number, Name name) {
    auto [known, fresh] = known_.try_emplace({family, number});
    if (fresh) known->second = &groups_[{family, name()}];
    known->second->push_back(t);
  }

  WorkGroup& PartOf(const HostName& what) {
    auto [it, fresh] = parts_.try_emplace(what);
    if (fresh)
      it->second = {.family = Family::kHost, .name = what.name, .tasks = {}, .apart = true};
    return it->second;
  }
  // Their names hang on the scope alone.
  void AddParts(TaskId t) {
    const ScopeId scope = graph_.task(t).scope;
    const auto [work, first] = part_of_work_.try_emplace(scope);
    if (first) work->second = &PartOf(NameOfWork(graph_, t));
    work->second->tasks.push_back(t);
    if (graph_.task(t).gap <= Duration{}) return;
    const auto [gap, first_gap] = part_of_gap_.try_emplace(scope);
    if (first_gap) gap->second = &PartOf(NameOfGap(graph_, t));
    gap->second->gaps.push_back(t);
  }

  const Graph& graph_;
  Grouper classes_;
  std::map<std::pair<Family, std::string>, std::vector<TaskId>> groups_;
  absl::flat_hash_map<std::pair<Family, uint32_t>, std::vector<TaskId>*> known_;  // of `groups_`
  std::map<HostName, WorkGroup> parts_;
  absl::flat_hash_map<ScopeId, WorkGroup*> part_of_work_, part_of_gap_;  // of `parts_`
};

// Tasks that wait in proportion to another one (rule G6).
struct Follower {
  TaskId task, holder;
};

std::vector<Follower> FollowersIn(const Graph& graph) {
  std::vector<Follower> out;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.kind != TaskKind::kDelay || t.removed || t.detail >= graph.size()) continue;
    if (graph.task(TaskId(t.detail)).duration > Duration{})
      out.push_back({TaskId(i), TaskId(t.detail)});
  }
  return out;
}

// A time that shrinks with the rest of its work: a duration, or the gap behind a task.
struct Shrinking {
  TaskId task;
  bool gap = false;
  Duration time;
};

std::vector<Shrinking> ShrinkingIn(const Graph& graph, const WorkGroup& group) {
  std::vector<Shrinking> pieces;
  for (TaskId id : group.tasks) {
    const Task& t = graph.task(id);
    pieces.push_back({id, false, t.duration});
    const bool with_gap = IsHost(t.kind) && t.gap > Duration{} && !group.apart;
    if (with_gap) pieces.push_back({id, true, t.gap});
  }
  for (TaskId id : group.gaps) pieces.push_back({id, true, graph.task(id).gap});
  return pieces;
}

// What a curve is played from.
struct CurveWork {
  std::vector<Shrinking> pieces;
  std::vector<Follower> followers;
};

class Profiler {
 public:
  Profiler(const Graph& graph, const CausalOptions& options)
      : graph_(graph),
        options_(options),
        followers_(FollowersIn(graph)),
        copies_(graph),
        replays_(graph) {
    const std::vector<size_t> counted = CountedSteps(graph);
    counts_.assign(std::max<size_t>(graph.steps().size(), 1), counted.empty());
    for (size_t s : counted) counts_[s] = true;
    steps_ = std::count(counts_.begin(), counts_.end(), true);
  }

  absl::StatusOr<CausalProfile> Run(std::span<const WorkGroup> groups) {
    if (replays_.plan() == nullptr) return Plan::Of(graph_).status();  // says why
    const Timeline timeline = replays_.plan()->Run(graph_);
    path_ = PathByLimiter(graph_, timeline);
    CausalProfile out;
    out.points = options_.points;
    const std::vector<size_t> chosen = Choose(groups, out.left_out);
    out.curves.resize(chosen.size());
    out.step = StepTime(graph_, timeline);
    // Eight curves at a time: their ends are played side by side.
    const size_t parts = (chosen.size() + StepBatch::kWidth - 1) / StepBatch::kWidth;
    const auto stopped = [&] { return options_.stopped && options_.stopped(); };
    if (options_.progress) options_.progress(0, chosen.size());
    ForEachParallel(parts, options_.jobs, [&](size_t part) {
      if (stopped()) return;
      const Replays::Lent batch = replays_.Batch(graph_);
      const size_t first = part * StepBatch::kWidth;
      const size_t count = std::min<size_t>(StepBatch::kWidth, chosen.size() - first);
      std::vector<CurveWork> work;
      for (size_t i = 0; i < count; ++i) work.push_back(WorkIn(groups[chosen[first + i]]));
      const std::array<Duration, StepBatch::kWidth> without = PlayWithout(work, *batch);
      for (size_t i = 0; i < count && !stopped(); ++i) {
        SpeedupCurve& curve = out.curves[first + i];
        curve = Described(groups[chosen[first + i]]);
        curve.steps = {out.step, without[i]};
        curve.flat = curve.saved() < out.step.Scaled(kFlat);
        if (!curve.flat || options_.flat_in_full) PlayPoints(work[i], *batch, curve);
        if (!curve.flat) FindBend(work[i], *batch, curve);
        Tell(chosen.size());
      }
    });
    out.unplayed =
        std::erase_if(out.curves, [](const SpeedupCurve& curve) { return curve.steps.empty(); });
    std::stable_sort(
        out.curves.begin(), out.curves.end(),
        [](const SpeedupCurve& a, const SpeedupCurve& b) { return a.saved() > b.saved(); });
    return out;
  }

 private:
  using Shares = std::array<double, StepBatch::kWidth>;

  bool Counts(const Task& t) const { return t.step < counts_.size() && counts_[t.step]; }

  Duration WorkOf(const WorkGroup& group) const {
    Duration work;
    for (TaskId id : group.tasks) {
      const Task& t = graph_.task(id);
      if (!Counts(t)) continue;
      const bool shrinks = IsHost(t.kind) && !group.apart;
      work += t.duration + (shrinks ? std::max(t.gap, Duration{}) : Duration{});
    }
    for (TaskId id : group.gaps) {
      if (Counts(graph_.task(id))) work += graph_.task(id).gap;
    }
    return work;
  }

  // Places of the groups with most work, by family as many as wanted; in the order of `groups`.
  std::vector<size_t> Choose(std::span<const WorkGroup> groups, size_t& left_out) const {
    std::vector<Duration> work(groups.size());
    std::map<Family, std::vector<size_t>> by_family;
    for (size_t g = 0; g < groups.size(); ++g) {
      work[g] = WorkOf(groups[g]);
      by_family[groups[g].family].push_back(g);
    }
    std::vector<size_t> chosen;
    for (auto& [family, places] : by_family) {
      std::stable_sort(places.begin(), places.end(),
                       [&](size_t a, size_t b) { return work[a] > work[b]; });
      if (options_.most > 0 && places.size() > options_.most) {
        left_out += places.size() - options_.most;
        places.resize(options_.most);
      }
      chosen.insert(chosen.end(), places.begin(), places.end());
    }
    return chosen;
  }

  CurveWork WorkIn(const WorkGroup& group) const {
    CurveWork work{.pieces = ShrinkingIn(graph_, group)};
    std::vector<bool> member(graph_.size(), false);
    for (TaskId t : group.tasks) member[t.index()] = true;
    for (const Follower& f : followers_) {
      if (member[f.holder.index()] && !member[f.task.index()]) work.followers.push_back(f);
    }
    return work;
  }

  // Of a task that waits in proportion to one of which `kept` is left.
  Duration WaitOf(const Follower& f, double kept) const {
    const Duration held = graph_.task(f.holder).duration;
    return graph_.task(f.task).duration.Scaled(held.Scaled(kept).seconds() / held.seconds());
  }

  // The step without one of these, in each of as many scenarios.
  std::array<Duration, StepBatch::kWidth> PlayWithout(std::span<const CurveWork> of,
                                                      StepBatch& batch) const {
    batch.Reset();
    for (size_t s = 0; s < of.size(); ++s) {
      for (const Shrinking& piece : of[s].pieces) {
        const StepBatch::Sums sums = batch.sums(piece.task);
        (piece.gap ? sums.gap : sums.duration)[s] -= piece.time.ns;
      }
      for (const Follower& f : of[s].followers) {
        batch.Set(s, f.task, WaitOf(f, 0), graph_.task(f.task).gap);
      }
    }
    return batch.Run();
  }

  // The step when so much of the work is left, in each of eight scenarios.
  std::array<Duration, StepBatch::kWidth> Play(const CurveWork& work, const Shares& kept,
                                               StepBatch& batch) const {
    batch.Reset();
    for (const Shrinking& piece : work.pieces) {
      const StepBatch::Sums sums = batch.sums(piece.task);
      int64_t* const sum = piece.gap ? sums.gap : sums.duration;
      for (size_t s = 0; s < kept.size(); ++s) {
        sum[s] += (piece.time.Scaled(kept[s]) - piece.time).ns;
      }
    }
    for (const Follower& f : work.followers) {
      for (size_t s = 0; s < kept.size(); ++s) {
        batch.Set(s, f.task, WaitOf(f, kept[s]), graph_.task(f.task).gap);
      }
    }
    return batch.Run();
  }

  // Of parts of host work, which lie between calls, as often as what they are of began.
  double CallsOf(const WorkGroup& group) const {
    size_t calls = 0;
    absl::flat_hash_set<uint32_t> seen;
    for (TaskId id : group.tasks) {
      const Task& t = graph_.task(id);
      if (!Counts(t)) continue;
      const bool piece = group.apart && t.kind == TaskKind::kHost && t.scope.valid();
      calls += piece ? seen.insert(t.scope.value).second : 1;
    }
    return static_cast<double>(calls);
  }

  // Without its points.
  SpeedupCurve Described(const WorkGroup& group) const {
    return {.family = group.family,
            .name = group.name,
            .work = WorkOf(group) / steps_,
            .calls = CallsOf(group) / static_cast<double>(steps_),
            .steps = {}};
  }

  void PlayPoints(const CurveWork& work, StepBatch& batch, SpeedupCurve& curve) const {
    curve.steps.clear();
    Shares kept;
    for (size_t first = 0; first <= options_.points; first += kept.size()) {
      for (size_t s = 0; s < kept.size(); ++s) {
        kept[s] = Kept(std::min(first + s, options_.points));
      }
      for (Duration d : Play(work, kept, batch)) {
        if (curve.steps.size() <= options_.points) curve.steps.push_back(d);
      }
    }
  }

  double Kept(size_t point) const {
    return 1 - static_cast<double>(point) / static_cast<double>(options_.points);
  }

  void FindBend(const CurveWork& work, StepBatch& batch, SpeedupCurve& curve) {
    const Duration all = curve.saved();
    Duration furthest = all.Scaled(kBent);
    const auto look = [&](double share, Duration step) {
      const Duration above = curve.steps.front() - step - all.Scaled(share);
      if (above < furthest || (curve.bend.has_value() && above == furthest)) return;
      furthest = above;
      curve.bend = share;
    };
    for (size_t at = 1; at < options_.points; ++at) look(1 - Kept(at), curve.steps[at]);
    if (!curve.bend.has_value()) return;
    // It is between the neighbours of that point: plays eight more there, and again.
    double reach = 1 / static_cast<double>(options_.points);
    for (int round = 0; round < 2; ++round) {
      const double from = *curve.bend - reach;
      reach = 2 * reach / (StepBatch::kWidth + 1);
      const auto share = [&](size_t s) { return from + reach * static_cast<double>(s + 1); };
      Shares kept;
      for (size_t s = 0; s < kept.size(); ++s) kept[s] = 1 - share(s);
      size_t s = 0;
      for (Duration step : Play(work, kept, batch)) look(share(s++), step);
    }
    curve.next = NextLimiter(work, (1 - *curve.bend) / 2);
  }

  // What grew most on the critical path when `kept` of the work is left.
  std::optional<Limiter> NextLimiter(const CurveWork& work, double kept) {
    const GraphCopies::Copy edited = copies_.Make();
    for (const Shrinking& piece : work.pieces) {
      const Duration left = piece.time.Scaled(kept);
      piece.gap ? edited->SetGap(piece.task, left) : edited->SetDuration(piece.task, left);
    }
    for (const Follower& f : work.followers) edited->SetDuration(f.task, WaitOf(f, kept));
    const Timeline timeline = replays_.plan()->Run(*edited);
    std::optional<Limiter> next;
    Duration most;
    for (Limiter& l : PathByLimiter(*edited, timeline)) {
      const auto same = std::ranges::find_if(path_, [&](const Limiter& b) {
        return b.resource == l.resource && b.what == l.what && b.lane == l.lane;
      });
      const Duration growth = l.time - (same == path_.end() ? Duration{} : same->time);
      if (growth <= most) continue;
      most = growth;
      next = std::move(l);
    }
    return next;
  }

  void Tell(size_t total) {
    std::lock_guard lock(mutex_);
    ++done_;
    if (options_.progress) options_.progress(done_, total);
  }

  const Graph& graph_;
  const CausalOptions& options_;
  std::vector<Follower> followers_;
  GraphCopies copies_;  // for what only one point needs
  Replays replays_;
  std::vector<bool> counts_;   // by step
  std::vector<Limiter> path_;  // of the whole work
  int64_t steps_ = 1;          // that count
  std::mutex mutex_;
  size_t done_ = 0;
};

}  // namespace

std::string_view Name(Family f) {
  constexpr std::string_view kNames[] = {"kernels", "layer", "collective", "copies",
                                         "call",    "host",  "selected"};
  static_assert(std::size(kNames) == static_cast<size_t>(Family::kSelected) + 1);
  return kNames[static_cast<size_t>(f)];
}

std::vector<WorkGroup> WorkGroups(const Graph& graph) {
  Families families(graph);
  for (size_t i = 0; i < graph.size(); ++i) families.Add(TaskId(i));
  return families.Take();
}

double CausalProfile::share(size_t point) const {
  return static_cast<double>(point) / static_cast<double>(points);
}

absl::StatusOr<CausalProfile> ProfileCauses(const Graph& graph, std::span<const WorkGroup> groups,
                                            const CausalOptions& options) {
  return Profiler(graph, options).Run(groups);
}

}  // namespace daydream
