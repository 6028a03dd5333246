// Working state of graph construction, shared by the rule files. One rule = one function that
// takes the Builder; graph/build.cc calls them in order. Not part of the public interface.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/id_table.h"
#include "graph/build.h"
#include "graph/call_kind.h"
#include "graph/fetch.h"
#include "graph/graph.h"
#include "graph/step_windows.h"
#include "trace/trace.h"

namespace daydream {

// A call of a host thread: what rules ask of it, at one place. There are few calls beside tasks.
struct HostCall {
  TaskId task;  // None: not recorded
  NameId name;
  ScopeId scope;
  CallKind kind = CallKind::kOther;
  Instant start, end;
  bool valid() const { return task.valid(); }
  Duration duration() const { return end - start; }
};

// Its first and last operation, as indices into Builder::ops; kNone where it has none.
struct OpsOfCall {
  uint32_t first = Id<void>::kNoneValue, last = Id<void>::kNoneValue;
};

// A GPU operation during construction; index = position in global (start, end, row) order. 64
// bytes: many rules go over all of them.
struct GpuOp {
  TaskId task;
  uint32_t row = 0;  // of the Trace
  LaneId lane;
  uint32_t call_index = Id<void>::kNoneValue;  // into Builder::calls
  Instant start, end;
  Instant call_start;     // of the call, no earlier than of those before it on the stream
  Instant call_end;       // not recorded: `call_start`
  TaskId call;            // None: not recorded
  uint32_t position = 0;  // in its stream
  TaskKind kind = TaskKind::kKernel;
  bool takes_place = false;   // in the launch queue (graph/queue.h)
  bool first_of_call = true;  // first operation of its call on its stream
  bool many = false;          // its call launched several operations (a CUDA graph)
  bool own_copy = false;      // its call waits for it (rule B2): submitted when the call says so
};

// A range of host work that belongs to a thread's own program: an outermost op, or a call made
// outside of any op.
struct OwnEvent {
  Instant begin, end;
  bool autograd = false;  // named like the backward engine's work
};

struct HostThread {
  LaneId lane;
  std::vector<TaskId> tasks;              // in time order
  uint32_t first_call = 0, end_call = 0;  // of Builder::calls: those that are calls
  std::vector<OwnEvent> own;              // in time order
  size_t autograd = 0;                    // how many of them are
  bool has_marks = false;                 // holds ProfilerStep or Optimizer annotations
  bool is_process_main = false;           // tid == pid
  bool backward = false;                  // rule T0: runs the backward engine
};

// Typical values of this trace (rules L2, G2, B, E, Q), learned before they are used.
struct TypicalLags {
  Duration launch;                  // call end -> start on an idle stream
  Duration stream_gap[4][4] = {};   // [previous][this] category, see GpuCategory
  Duration event{Duration::Us(1)};  // awaited end -> start on the waiting stream
};

struct Builder {
  static constexpr uint32_t kNone = 0xffffffff;

  Builder(std::shared_ptr<const Trace> t, const BuildOptions& o);

  std::shared_ptr<const Trace> trace_owner;
  const Trace& trace;
  BuildOptions options;
  std::shared_ptr<GraphTables> tables;
  Graph graph;
  BuildReport report;

  std::vector<CallKind> call_kind;      // by NameId of the trace
  std::vector<uint32_t> calls_of_name;  // likewise: rows that are calls
  bool hip = false;                     // some call is one of AMD's runtime
  // By TaskId: what most rules ask of a task, so that their passes need not read all of it.
  std::vector<Instant> task_start, task_end;  // as recorded
  std::vector<CallKind> kind_of_task;         // kOther where it is no call
  std::vector<TaskId> next_on_lane;           // Task::lane_next
  std::vector<uint16_t> step_of_task;         // Task::step, once steps are assigned
  std::vector<HostCall> calls;                // of all threads, one behind the other
  std::vector<OpsOfCall> ops_of_call;         // by index into calls
  // Indices into calls, in order: of those that wait, or that make streams wait, and of graphs that
  // are launched. They are few, and who asks for them need not go over all calls.
  std::vector<uint32_t> special_calls;
  std::vector<HostThread> threads;
  std::vector<GpuOp> ops;                         // global order
  std::vector<std::vector<uint32_t>> stream_ops;  // by LaneId: indices into ops, in order
  std::vector<TaskId> collectives;                // of ops, in order
  TypicalLags typical;
  std::vector<bool> waits;  // by TaskId: its end is held up by an edge
  std::vector<size_t>
      backlog;  // by LaneId: tasks in front that were launched before the window (Q5)
  // (waiting operation, awaited operation), sorted; indices into ops.
  std::vector<std::pair<uint32_t, uint32_t>> event_waits;

  bool typical_lags() const { return options.lags == Lags::kTypical; }
  CallKind KindOf(TaskId t) const { return kind_of_task[t.index()]; }
  Instant Start(TaskId t) const { return task_start[t.index()]; }
  Instant End(TaskId t) const { return task_end[t.index()]; }
  Duration RecordedDuration(TaskId t) const { return End(t) - Start(t); }
  std::span<HostCall> CallsOf(const HostThread& thread) {
    return std::span(calls).subspan(thread.first_call, thread.end_call - thread.first_call);
  }
  std::span<const HostCall> CallsOf(const HostThread& thread) const {
    return std::span(calls).subspan(thread.first_call, thread.end_call - thread.first_call);
  }

  // What tells most of the tasks that are appended. Not in the order of Task: what was written in
  // two pieces would be read as one, which waits until both are there.
  struct New {
    TaskKind kind;
    NameId name;
    LaneId lane;
    ScopeId scope;
    uint32_t event = kNone;
    Duration duration;
    uint32_t detail = kNone;
  };
  // Appends a task that was recorded as [begin, end] to its lane.
  TaskId Append(const New& made, Instant begin, Instant end) {
    const TaskId id(graph.size());
    Task& task = graph.AppendTo(made.lane);
    task.recorded_start = begin;
    task.duration = made.duration;
    task.name = made.name;
    task.scope = made.scope;
    task.event = made.event;
    task.detail = made.detail;
    task.kind = made.kind;
    Note(task, begin, end, task.lane_prev, TaskId::None());
    return id;
  }
  TaskId InsertAfter(TaskId after, Task task, Instant begin, Instant end);
  TaskId InsertBefore(TaskId before, Task task, Instant begin, Instant end);
  void SetStart(TaskId t, Instant start);  // recorded_start
  void AddEdge(TaskId from, TaskId to, Duration lag, Rule rule, Anchor from_anchor = Anchor::kEnd,
               Anchor to_anchor = Anchor::kStart);
  // Of one of calls, which are in the order of TaskId. O(log calls).
  uint32_t IndexOf(TaskId call) const {
    const auto at = std::ranges::lower_bound(calls, call, {}, &HostCall::task);
    return static_cast<uint32_t>(at - calls.begin());
  }
  // The call with this correlation id (the runtime call when a driver call shares it), or None.
  TaskId CallOf(uint32_t correlation) const {
    const uint32_t call = CallIndex(correlation);
    return call == kNone ? TaskId::None() : calls[call].task;
  }
  // The same as an index into calls, or kNone.
  uint32_t CallIndex(uint32_t correlation) const {
    return correlation == 0 ? kNone : call_of_correlation_.Get(correlation);
  }
  void SetCallOf(uint32_t correlation, uint32_t call) {
    if (correlation != 0) call_of_correlation_.Set(correlation, call);
  }
  // Sync record of a call (CUPTI synchronization activity), nullptr when there is none.
  const SyncDetail* SyncOf(uint32_t correlation) const;
  // Index into ops of the last operation on `lane` whose call started before `t`; none = kNone.
  // O(log operations since it was last asked of this lane).
  uint32_t LastLaunchedBefore(LaneId lane, Instant t) const;
  // Tasks of the operations, [first, second), in the order of ops; where there are none, behind all
  // tasks.
  std::pair<size_t, size_t> TasksOfOps() const {
    const size_t first = ops.empty() ? graph.size() : ops.front().task.index();
    return {first, first + ops.size()};
  }
  // Index into ops, kNone for other tasks: those of operations follow one another.
  uint32_t OpOf(TaskId t) const {
    const size_t place = ops.empty() ? 0 : t.index() - ops.front().task.index();
    return place < ops.size() ? static_cast<uint32_t>(place) : kNone;
  }

 private:
  // In the columns.
  void Note(const Task& task, Instant begin, Instant end, TaskId before, TaskId next) {
    if (before.valid()) next_on_lane[before.index()] = TaskId(next_on_lane.size());
    next_on_lane.push_back(next);
    task_start.push_back(begin);
    task_end.push_back(end);
    kind_of_task.push_back(task.kind == TaskKind::kCall ? call_kind[task.name.index()]
                                                        : CallKind::kOther);
  }

  IdTable<uint32_t> call_of_correlation_{kNone};
  IdTable<uint32_t> sync_of_correlation_{kNone};
  mutable std::vector<size_t> asked_;  // by LaneId: where LastLaunchedBefore() found the last
};

// Chosen for rows of one loop, by what BM_BuildLargeGraph takes.
inline constexpr uint32_t kCallsAhead = 8;

enum class GpuCategory : uint8_t { kKernel, kMemcpy, kMemset, kCollective };
GpuCategory CategoryOf(TaskKind kind);

// Clocks of host and GPU differ by up to this much in recorded traces (rule B6: waits end up to
// some 10 us before what they wait for, on MI300X).
inline constexpr Duration kClockSkew = Duration::Us(50);
// Times may be written in whole microseconds: an operation may start this much before an awaited
// end.
inline constexpr Duration kGranularity = Duration::Us(1);

// Rules in the order in which they run. Numbers refer to docs/how-it-works.md.
void AddHostThreads(Builder& b);             // C: chains of host work, scopes
void AddStreams(Builder& b);                 // G1, G3: GPU operations and their order
void LearnTypicalLags(Builder& b);           // L2, G2
void AddHandOffs(Builder& b);                // T: backward thread <-> main thread
void AddJobs(Builder& b);                    // T3: jobs that one thread hands to another
void AddBlockingCalls(Builder& b);           // B: calls that wait for the GPU
void AddQueueLimits(Builder& b);             // Q: launch calls wait for room in the queue
void AddDefaultStreamWaits(Builder& b);      // E4: the default stream and blocking streams
void AddEventWaits(Builder& b);              // E: one stream waits for another
void SettleStarts(Builder& b);               // L, G2-G8, E3: why each operation started when it did
void AddPlan(Builder& b);                    // P: all of the above for a trace that is a plan
absl::Status CutContradictions(Builder& b);  // E0304 when there are too many
void EstimateTransfers(Builder& b);  // N2: part of a collective that is not waiting for peers
void AssignSteps(Builder& b);        // I: which step each task belongs to
void RecordPeriods(Builder& b, TasksOfSteps tasks);  // all of the graph
absl::Status FinishTasks(Builder& b);  // graph/finish_tasks.cc: what tasks have of all that

}  // namespace daydream
