// The tasks of a copy whose times were set.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "graph/facts.h"
#include "graph/graph.h"

namespace daydream {

// What such a task took and takes.
struct Retimed {
  TaskId task;
  TaskKind kind = {};
  bool removed = false;
  Duration duration_was, gap_was, duration, gap;
};
using RetimedTasks = std::vector<Retimed>;

// Each of Graph::retimed() once, against the graph as it was when `copy` got its structure().
// Found once where `copy` shares its facts. O(tasks / 64 + retimed()).
inline std::shared_ptr<const RetimedTasks> RetimedOf(const Graph& recorded, const Graph& copy) {
  return FactOf<RetimedTasks>(copy, [&] {
    std::vector<bool> seen(copy.size());
    std::vector<TaskId> once;
    once.reserve(copy.retimed().size());
    for (TaskId t : copy.retimed()) {
      if (!seen[t.index()]) once.push_back(t);
      seen[t.index()] = true;
    }
    RetimedTasks tasks;
    tasks.reserve(once.size());
    for (TaskId t : once) {
      const Task &was = recorded.task(t), &is = copy.task(t);
      tasks.push_back({t, is.kind, is.removed, was.duration, was.gap, is.duration, is.gap});
    }
    return tasks;
  });
}

// Sets times of a copy that has a structure() and was not edited since, and shares facts with
// nobody but who asks for these. O(tasks given).
inline void Retime(Graph& copy, RetimedTasks tasks) {
  for (const Retimed& t : tasks) {
    copy.SetDuration(t.task, t.duration);
    copy.SetGap(t.task, t.gap);
  }
  const auto facts = std::make_shared<GraphFacts>();
  facts->Get<RetimedTasks>(0, [&] { return std::move(tasks); });
  copy.ShareFacts(facts);
}

// What the tasks of a copy take less (negative) or more than those of `recorded`.
inline Duration RetimedBy(const Graph& recorded, const Graph& copy) {
  Duration by;
  const auto tasks = RetimedOf(recorded, copy);
  for (const Retimed& t : *tasks) {
    by += t.duration - t.duration_was + (t.gap - t.gap_was);
  }
  return by;
}

}  // namespace daydream
