// Rules T1 and T2: the thread that calls backward() hands over to the backward engine's thread and
// waits until it is done. Without this rule, the two run side by side from fixed instants and no
// optimization of the forward pass ever reaches the backward pass.
//
// The caller's silent time is split into: work until the engine's first op (host time, scales with
// the CPU), a wait for the engine's last op, and work until the caller's next own event.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "graph/builder.h"
#include "graph/scopes.h"
#include "graph/search_near.h"

namespace daydream {
namespace {

constexpr Duration kShortestWait = Duration::Us(5);  // rule T2
constexpr size_t kOwnEventsWhileSilent = 2;          // rule T1: hooks may run on the caller

struct Group {
  Instant begin, end;  // first start and last end of the engine's outermost ops
};

// The own events of a thread by time, past those that are autograd work. Of the thread that runs
// the backward engine nothing is asked.
class OwnWork {
 public:
  explicit OwnWork(const HostThread& thread) : events_(thread.own) {
    if (thread.autograd == 0 || thread.backward) return;
    next_.resize(events_.size() + 1);
    last_.resize(events_.size() + 1);
    const auto size = static_cast<uint32_t>(events_.size());
    next_.back() = size;
    for (uint32_t i = size; i-- > 0;) next_[i] = events_[i].autograd ? next_[i + 1] : i;
    for (uint32_t i = 0; i < size; ++i) last_[i + 1] = events_[i].autograd ? last_[i] : i + 1;
  }

  // The first that begins at or after `t`; null: none.
  const OwnEvent* Next(Instant t) const {
    const size_t i = NextFrom(LowerBound(t));
    return i < events_.size() ? &events_[i] : nullptr;
  }
  // The last that begins before `t`; null: none.
  const OwnEvent* Last(Instant t) const {
    const size_t behind = LowerBound(t), i = last_.empty() ? behind : last_[behind];
    return i > 0 ? &events_[i - 1] : nullptr;
  }
  // Whether more than `most` of them begin in [from, to).
  bool MoreThan(size_t most, Instant from, Instant to) const {
    size_t i = NextFrom(LowerBound(from));
    for (; i < events_.size() && events_[i].begin < to; i = NextFrom(i + 1)) {
      if (most-- == 0) return true;
    }
    return false;
  }

 private:
  size_t NextFrom(size_t i) const { return next_.empty() ? i : next_[i]; }
  size_t LowerBound(Instant t) const {
    return asked_ = PartitionPointNear(events_.size(), asked_,
                                       [&](size_t i) { return events_[i].begin < t; });
  }

  const std::vector<OwnEvent>& events_;
  mutable size_t asked_ = 0;  // the last LowerBound(): groups are asked of in the order of time
  // By index, where some are autograd work: the next that is none, at or after it; behind the last
  // before it.
  std::vector<uint32_t> next_, last_;
};

bool WorksBetween(const Builder& b, std::span<const OwnWork> own, Instant from, Instant to) {
  for (size_t m = 0; m < b.threads.size(); ++m) {
    if (b.threads[m].backward) continue;
    const OwnEvent* next = own[m].Next(from);
    if (next != nullptr && next->begin < to) return true;
  }
  return false;
}

std::vector<Group> GroupsOf(const Builder& b, std::span<const OwnWork> own,
                            const HostThread& engine) {
  std::vector<Group> groups;
  for (const OwnEvent& e : engine.own) {
    if (!groups.empty() && !WorksBetween(b, own, groups.back().end, e.begin)) {
      groups.back().end = std::max(groups.back().end, e.end);
    } else {
      groups.push_back({e.begin, e.end});
    }
  }
  return groups;
}

// The thread with the latest own activity before the group that is silent during it.
std::optional<size_t> CallerOf(const Builder& b, std::span<const OwnWork> own, const Group& group) {
  std::optional<size_t> best;
  Instant best_end = Instant::Min();
  for (size_t m = 0; m < b.threads.size(); ++m) {
    if (b.threads[m].backward) continue;
    if (own[m].MoreThan(kOwnEventsWhileSilent, group.begin, group.end)) continue;
    const OwnEvent* last = own[m].Last(group.begin);
    if (last == nullptr) continue;
    Instant end = std::min(last->end, group.begin);
    if (end > best_end) best_end = end, best = m;
  }
  return best;
}

// A thread whose time is split. What is inserted stands on its lane alone, until Done() puts all of
// it into HostThread::tasks: one by one would take the length of the recording each time.
class Split {
 public:
  // A task of the thread, and the last in HostThread::tasks that is not behind it.
  struct Place {
    TaskId task;
    size_t recorded = 0;
  };

  Split(Builder& b, HostThread& thread) : b_(b), tasks_(thread.tasks), lane_(thread.lane) {}
  LaneId lane() const { return lane_; }

  // The last task that starts at or before `t`.
  std::optional<Place> At(Instant t) const {
    const auto it = std::partition_point(tasks_.begin(), tasks_.end(),
                                         [&](TaskId id) { return b_.Start(id) <= t; });
    if (it == tasks_.begin()) return std::nullopt;
    Place at{*(it - 1), static_cast<size_t>(it - tasks_.begin()) - 1};
    if (last_.task.valid() && last_.recorded == at.recorded && b_.Start(last_.task) <= t) {
      at = last_;
    }
    for (Place next = at; Advance(next) && b_.Start(next.task) <= t;) at = next;
    return at;
  }

  // To the next task of the thread; false: there is none.
  bool Advance(Place& at) const {
    at.task = b_.graph.task(at.task).lane_next;
    const size_t next = at.recorded + 1;
    if (next < tasks_.size() && tasks_[next] == at.task) at.recorded = next;
    return at.task.valid();
  }

  // Behind `at`, which is moved to it.
  void Insert(Place& at, const Task& task, Instant begin, Instant end) {
    at.task = b_.InsertAfter(at.task, task, begin, end);
    behind_.push_back(at.recorded);
    last_ = at;
  }

  void Done() {
    if (behind_.empty()) return;
    std::ranges::sort(behind_);
    behind_.erase(std::unique(behind_.begin(), behind_.end()), behind_.end());
    std::vector<TaskId> all;
    all.reserve(tasks_.size() + 4 * behind_.size());
    size_t copied = 0;
    for (size_t recorded : behind_) {
      all.insert(all.end(), tasks_.begin() + static_cast<std::ptrdiff_t>(copied),
                 tasks_.begin() + static_cast<std::ptrdiff_t>(recorded) + 1);
      copied = recorded + 1;
      Place at{tasks_[recorded], recorded};
      while (Advance(at) && at.recorded == recorded) all.push_back(at.task);
    }
    all.insert(all.end(), tasks_.begin() + static_cast<std::ptrdiff_t>(copied), tasks_.end());
    tasks_ = std::move(all);
  }

 private:
  Builder& b_;
  std::vector<TaskId>& tasks_;
  LaneId lane_;
  std::vector<size_t> behind_;  // of tasks_: something was inserted behind it
  Place last_;                  // what was inserted last
};

class HandOff {
 public:
  HandOff(Builder& b, const HostThread& engine, Split& caller, const OwnWork& callers)
      : b_(b), engine_(engine), caller_(caller), callers_(callers) {}

  // Splits the caller's time around `group`. False when the caller is inside a CUDA call then.
  bool Apply(const Group& group) {
    const std::optional<Split::Place> at = caller_.At(group.begin);
    if (!at) return false;
    TaskId trigger = SplitAtTrigger(*at, group);
    if (!trigger.valid()) return false;
    auto first = std::partition_point(engine_.tasks.begin(), engine_.tasks.end(),
                                      [&](TaskId t) { return b_.Start(t) < group.begin; });
    if (first == engine_.tasks.end()) return false;
    if (first != engine_.tasks.begin()) LeaveOutIdle(*(first - 1));
    b_.graph.mutable_task(*first).earliest = {};
    b_.AddEdge(trigger, *first, b_.Start(*first) - b_.End(trigger), Rule::kHandOff);
    return true;
  }

 private:
  // The engine does nothing between two groups. That time is the gap of its last task, or a stretch
  // outside of everything where the group before ended with a range (of a layer).
  void LeaveOutIdle(TaskId last) {
    Task& task = b_.graph.mutable_task(last);
    task.gap = {};
    if (task.kind != TaskKind::kHost || task.scope.valid()) return;
    task.duration = {};
    b_.task_end[last.index()] = b_.Start(last);
  }

  // The last task of the engine that ends in (after, until].
  TaskId EngineEndIn(Instant after, Instant until) const {
    auto it = std::partition_point(engine_.tasks.begin(), engine_.tasks.end(),
                                   [&](TaskId t) { return b_.End(t) <= until; });
    if (it == engine_.tasks.begin() || b_.End(*(it - 1)) <= after) return TaskId::None();
    return *(it - 1);
  }

  // Whose time from `begin` on is, after this task: that of its scope while it lasts, then of what
  // is around the operator.
  ScopeId ScopeFrom(TaskId before, Instant begin) const {
    const ScopeId own = b_.graph.task(before).scope;
    if (begin < own_end_) return own;
    for (ScopeId s : ScopesAround(b_.graph, own)) {
      if (ScopeAt(b_.graph, s).kind != EventKind::kOp) return s;
    }
    return {};
  }

  TaskId AddHost(Split::Place& at, std::string_view name, TaskKind kind, Instant begin,
                 Instant end) {
    Task task{.duration = kind == TaskKind::kWait ? Duration{} : end - begin,
              .name = b_.graph.AddName(name),
              .lane = caller_.lane(),
              .scope = ScopeFrom(at.task, begin),
              .kind = kind};
    caller_.Insert(at, task, begin, end);
    return at.task;
  }

  // Turns [wait_from, to] of the caller, which follows `at`, into a wait for the engine's task
  // `target` and host work after it.
  void AddWait(Split::Place& at, Instant wait_from, TaskId target, Instant to) {
    TaskId wait = AddHost(at, "(waits for backward)", TaskKind::kWait, wait_from, b_.End(target));
    b_.AddEdge(target, wait, {}, Rule::kHandOff, Anchor::kEnd, Anchor::kEnd);
    if (to > b_.End(target)) {
      AddHost(at, "(returns from backward)", TaskKind::kHost, b_.End(target), to);
    }
  }

  // Splits the stretch of the caller that holds group.begin; returns the task whose end starts the
  // engine, and turns this and the following silent stretches into waits (T2).
  TaskId SplitAtTrigger(Split::Place at, const Group& group) {
    const TaskId here = at.task;
    Instant from = b_.End(here), to;
    TaskId trigger;
    if (from <= group.begin) {  // in the gap after `here`
      to = from + b_.graph.task(here).gap;
      if (to < group.begin) return TaskId::None();
      b_.graph.mutable_task(here).gap = {};
      trigger = group.begin > from
                    ? AddHost(at, "(starts backward)", TaskKind::kHost, from, group.begin)
                    : here;
    } else if (b_.graph.task(here).kind == TaskKind::kHost) {
      to = from;
      Duration gap = b_.graph.task(here).gap;
      b_.graph.mutable_task(here).duration = group.begin - b_.Start(here);
      b_.graph.mutable_task(here).gap = {};
      b_.task_end[here.index()] = group.begin;
      own_end_ = to;
      trigger = here;
      after_gap_ = gap;
    } else {
      return TaskId::None();
    }
    TaskId target = EngineEndIn(group.begin, to);
    if (target.valid()) {
      AddWait(at, group.begin, target, to);
    } else if (to > group.begin) {
      AddHost(at, "(starts backward)", TaskKind::kHost, group.begin, to);
    }
    b_.graph.mutable_task(at.task).gap = after_gap_;
    WaitUntilOwnEvent(at, group);
    return trigger;
  }

  // Rule T2 for the stretches after the first: gaps and host work between here and the caller's
  // first own event after the group.
  void WaitUntilOwnEvent(Split::Place at, const Group& group) {
    const OwnEvent* next = callers_.Next(group.end);
    Instant limit = next == nullptr ? group.end + Duration::Ms(1) : next->begin;
    while (at.task.valid() && b_.Start(at.task) < limit) {
      const TaskId here = at.task;
      Instant from = b_.End(here), to = from + b_.graph.task(here).gap;
      TaskId target = to - from > kShortestWait ? EngineEndIn(from, to) : TaskId::None();
      if (target.valid() && b_.Start(target) >= group.begin) {
        b_.graph.mutable_task(here).gap = {};
        AddWait(at, from, target, to);
      }
      caller_.Advance(at);
    }
  }

  Builder& b_;
  const HostThread& engine_;
  Split& caller_;
  const OwnWork& callers_;
  Duration after_gap_;
  Instant own_end_ = Instant::Min();  // of the operator's own time that was split
};

}  // namespace

void AddHandOffs(Builder& b) {
  if (std::ranges::none_of(b.threads, &HostThread::backward)) return;
  const std::vector<OwnWork> own(b.threads.begin(), b.threads.end());
  std::vector<Split> splits;
  for (HostThread& thread : b.threads) splits.emplace_back(b, thread);
  uint64_t unmatched = 0;
  for (const HostThread& engine : b.threads) {
    if (!engine.backward) continue;
    for (const Group& group : GroupsOf(b, own, engine)) {
      const std::optional<size_t> caller = CallerOf(b, own, group);
      bool done =
          caller.has_value() && HandOff(b, engine, splits[*caller], own[*caller]).Apply(group);
      done ? ++b.report.handoffs : ++unmatched;
    }
  }
  for (Split& split : splits) split.Done();
  if (unmatched > 0) {
    b.report.warnings.push_back(fmt::format(
        "{} stretches of backward work have no thread that waits for them; they stay where they "
        "were recorded",
        unmatched));
  }
}

}  // namespace daydream
