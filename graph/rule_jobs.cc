// Rule T3: one thread hands a job to another, and the recorder says so (Trace::dependencies between
// rows that are no ops; those of ops are their arguments). The job begins once it is handed over: a
// thread that had nothing to do until then waited for it, one that was busy began it when it could.
#include <algorithm>
#include <optional>

#include "graph/builder.h"

namespace daydream {
namespace {

class Jobs {
 public:
  explicit Jobs(Builder& b) : b_(b), thread_of_(b.trace.lanes.size()) {
    for (const HostThread& thread : b.threads) thread_of_[thread.lane.index()] = &thread;
  }

  void Add(const DataDependency& d) {
    const Trace& t = b_.trace;
    if (!IsJob(d.producer) || !IsJob(d.consumer) || t.lane[d.producer] == t.lane[d.consumer])
      return;
    const Instant begin = t.start[d.consumer];
    const TaskId from = GiverAt(t.lane[d.producer], t.start[d.producer], begin);
    const TaskId job = FirstTask(t.lane[d.consumer], begin, t.End(d.consumer));
    if (!from.valid() || !job.valid()) return;
    // The thread that gives may go on with what it is at.
    const Anchor anchor = b_.End(from) <= begin ? Anchor::kEnd : Anchor::kStart;
    const Instant given = anchor == Anchor::kEnd ? b_.End(from) : b_.Start(from);
    // The edge leads to the job, not to the wait before it, which may lie in another step.
    const Duration lag = WasIdleBefore(job) ? begin - given : Duration{};
    b_.AddEdge(from, job, lag, Rule::kHandOff, anchor);
    ++b_.report.handoffs;
  }

 private:
  bool IsJob(uint32_t row) const {
    const EventKind kind = b_.trace.kind[row];
    return kind == EventKind::kAnnotation || kind == EventKind::kCall;
  }

  // What the thread was at when it was `begin`, unless that is from before `since`.
  TaskId GiverAt(LaneId lane, Instant since, Instant begin) const {
    const HostThread* thread = thread_of_[lane.index()];
    if (thread == nullptr) return TaskId::None();
    auto it = std::partition_point(thread->tasks.begin(), thread->tasks.end(),
                                   [&](TaskId task) { return b_.Start(task) < begin; });
    if (it == thread->tasks.begin() || b_.Start(*(it - 1)) < since) return TaskId::None();
    return *(it - 1);
  }

  TaskId FirstTask(LaneId lane, Instant begin, Instant end) const {
    const HostThread* thread = thread_of_[lane.index()];
    if (thread == nullptr) return TaskId::None();
    auto it = std::partition_point(thread->tasks.begin(), thread->tasks.end(),
                                   [&](TaskId task) { return b_.Start(task) < begin; });
    return it == thread->tasks.end() || b_.Start(*it) > end ? TaskId::None() : *it;
  }

  // Where its thread had nothing to do before `job`, that time is taken out.
  bool WasIdleBefore(TaskId job) {
    if (last_idle_ == job) return true;  // it was handed over twice, and waited for both
    const TaskId before = b_.graph.task(job).lane_prev;
    if (!before.valid()) {
      b_.graph.mutable_task(job).earliest = {};
    } else {
      Task& task = b_.graph.mutable_task(before);
      if (task.kind == TaskKind::kHost && !task.scope.valid()) {
        task.duration = {};
        task.name = b_.graph.AddName("(waits for a job)");
      } else if (task.gap == Duration{}) {
        return false;
      }
      task.gap = {};
    }
    last_idle_ = job;
    return true;
  }

  Builder& b_;
  std::vector<const HostThread*> thread_of_;  // by lane
  TaskId last_idle_;
};

}  // namespace

void AddJobs(Builder& b) {
  if (b.trace.dependencies.empty()) return;
  Jobs jobs(b);
  for (const DataDependency& d : b.trace.dependencies) jobs.Add(d);
}

}  // namespace daydream
