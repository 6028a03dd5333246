// Rules T1 and T2: the thread that calls backward() hands over to the backward engine's thread and
// waits until it is done. Without this rule, the two run side by side from fixed instants and no
// optimization of the forward pass ever reaches the backward pass.
//
// The caller's silent time is split into: work until the engine's first op (host time, scales with
// the CPU), a wait for the engine's last op, and work until the caller's next own event.
#include <algorithm>
#include <optional>

#include "graph/builder.h"

namespace daydream {
namespace {

constexpr Duration kShortestWait = Duration::Us(5);  // rule T2
constexpr size_t kOwnEventsWhileSilent = 2;          // rule T1: hooks may run on the caller

struct Group {
  Instant begin, end;  // first start and last end of the engine's outermost ops
};

// First own event (not autograd work) of `thread` that begins at or after `t`.
std::vector<OwnEvent>::const_iterator NextOwn(const HostThread& thread, Instant t) {
  auto it = std::lower_bound(thread.own.begin(), thread.own.end(), t,
                             [](const OwnEvent& e, Instant at) { return e.begin < at; });
  while (it != thread.own.end() && it->autograd) ++it;
  return it;
}

bool WorksBetween(const Builder& b, Instant from, Instant to) {
  for (const HostThread& m : b.threads) {
    if (m.backward) continue;
    auto it = NextOwn(m, from);
    if (it != m.own.end() && it->begin < to) return true;
  }
  return false;
}

std::vector<Group> GroupsOf(const Builder& b, const HostThread& engine) {
  std::vector<Group> groups;
  for (const OwnEvent& e : engine.own) {
    if (!groups.empty() && !WorksBetween(b, groups.back().end, e.begin)) {
      groups.back().end = std::max(groups.back().end, e.end);
    } else {
      groups.push_back({e.begin, e.end});
    }
  }
  return groups;
}

// The thread with the latest own activity before the group that is silent during it.
HostThread* CallerOf(Builder& b, const Group& group) {
  HostThread* best = nullptr;
  Instant best_end = Instant::Min();
  for (HostThread& m : b.threads) {
    if (m.backward) continue;
    size_t inside = 0;
    for (auto it = NextOwn(m, group.begin); it != m.own.end() && it->begin < group.end; ++it) {
      if (!it->autograd) ++inside;
    }
    if (inside > kOwnEventsWhileSilent) continue;
    auto after = std::lower_bound(m.own.begin(), m.own.end(), group.begin,
                                  [](const OwnEvent& e, Instant at) { return e.begin < at; });
    while (after != m.own.begin() && (after - 1)->autograd) --after;
    if (after == m.own.begin()) continue;
    Instant end = std::min((after - 1)->end, group.begin);
    if (end > best_end) best_end = end, best = &m;
  }
  return best;
}

// Index into `tasks` of the last task that starts at or before `t`.
std::optional<size_t> TaskAt(const Builder& b, const std::vector<TaskId>& tasks, Instant t) {
  auto it =
      std::partition_point(tasks.begin(), tasks.end(), [&](TaskId id) { return b.Start(id) <= t; });
  if (it == tasks.begin()) return std::nullopt;
  return static_cast<size_t>(it - tasks.begin()) - 1;
}

class HandOff {
 public:
  HandOff(Builder& b, const HostThread& engine, HostThread& caller)
      : b_(b), engine_(engine), caller_(caller) {}

  // Splits the caller's time around `group`. False when the caller is inside a CUDA call then.
  bool Apply(const Group& group) {
    std::optional<size_t> at = TaskAt(b_, caller_.tasks, group.begin);
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

  TaskId AddHost(size_t& index, std::string_view name, TaskKind kind, Instant begin, Instant end) {
    TaskId before = caller_.tasks[index];
    Task task{.duration = kind == TaskKind::kWait ? Duration{} : end - begin,
              .name = b_.graph.AddName(name),
              .lane = caller_.lane,
              .scope = b_.graph.task(before).scope,
              .kind = kind};
    TaskId t = b_.InsertAfter(before, task, begin, end);
    caller_.tasks.insert(caller_.tasks.begin() + static_cast<std::ptrdiff_t>(++index), t);
    return t;
  }

  // Turns [wait_from, to] of the caller, which follows task `index`, into a wait for the engine's
  // task `target` and host work after it.
  void AddWait(size_t& index, Instant wait_from, TaskId target, Instant to) {
    TaskId wait =
        AddHost(index, "(waits for backward)", TaskKind::kWait, wait_from, b_.End(target));
    b_.AddEdge(target, wait, {}, Rule::kHandOff, Anchor::kEnd, Anchor::kEnd);
    if (to > b_.End(target)) {
      AddHost(index, "(returns from backward)", TaskKind::kHost, b_.End(target), to);
    }
  }

  // Splits the stretch of the caller that holds group.begin; returns the task whose end starts the
  // engine, and turns this and the following silent stretches into waits (T2).
  TaskId SplitAtTrigger(size_t index, const Group& group) {
    TaskId here = caller_.tasks[index];
    Instant from = b_.End(here), to;
    TaskId trigger;
    if (from <= group.begin) {  // in the gap after `here`
      to = from + b_.graph.task(here).gap;
      if (to < group.begin) return TaskId::None();
      b_.graph.mutable_task(here).gap = {};
      trigger = group.begin > from
                    ? AddHost(index, "(starts backward)", TaskKind::kHost, from, group.begin)
                    : here;
    } else if (b_.graph.task(here).kind == TaskKind::kHost) {
      to = from;
      Duration gap = b_.graph.task(here).gap;
      b_.graph.mutable_task(here).duration = group.begin - b_.Start(here);
      b_.graph.mutable_task(here).gap = {};
      b_.task_end[here.index()] = group.begin;
      trigger = here;
      after_gap_ = gap;
    } else {
      return TaskId::None();
    }
    TaskId target = EngineEndIn(group.begin, to);
    if (target.valid()) {
      AddWait(index, group.begin, target, to);
    } else if (to > group.begin) {
      AddHost(index, "(starts backward)", TaskKind::kHost, group.begin, to);
    }
    b_.graph.mutable_task(caller_.tasks[index]).gap = after_gap_;
    WaitUntilOwnEvent(index, group);
    return trigger;
  }

  // Rule T2 for the stretches after the first: gaps and host work between here and the caller's
  // first own event after the group.
  void WaitUntilOwnEvent(size_t index, const Group& group) {
    auto next = NextOwn(caller_, group.end);
    Instant limit = next == caller_.own.end() ? group.end + Duration::Ms(1) : next->begin;
    while (index < caller_.tasks.size() && b_.Start(caller_.tasks[index]) < limit) {
      TaskId here = caller_.tasks[index];
      Instant from = b_.End(here), to = from + b_.graph.task(here).gap;
      TaskId target = to - from > kShortestWait ? EngineEndIn(from, to) : TaskId::None();
      if (target.valid() && b_.Start(target) >= group.begin) {
        b_.graph.mutable_task(here).gap = {};
        AddWait(index, from, target, to);
      }
      ++index;
    }
  }

  Builder& b_;
  const HostThread& engine_;
  HostThread& caller_;
  Duration after_gap_;
};

}  // namespace

void AddHandOffs(Builder& b) {
  uint64_t unmatched = 0;
  for (const HostThread& engine : b.threads) {
    if (!engine.backward) continue;
    for (const Group& group : GroupsOf(b, engine)) {
      HostThread* caller = CallerOf(b, group);
      bool done = caller != nullptr && HandOff(b, engine, *caller).Apply(group);
      done ? ++b.report.handoffs : ++unmatched;
    }
  }
  if (unmatched > 0) {
    b.report.warnings.push_back(fmt::format(
        "{} stretches of backward work have no thread that waits for them; they stay where they "
        "were recorded",
        unmatched));
  }
}

}  // namespace daydream
