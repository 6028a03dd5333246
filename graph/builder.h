// Working state of graph construction, shared by the rule files. One rule = one function that
// takes the Builder; graph/build.cc calls them in order. Not part of the public interface.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/id_table.h"
#include "graph/build.h"
#include "graph/call_kind.h"
#include "graph/graph.h"
#include "trace/trace.h"

namespace daydream {

// A GPU operation during construction; index = position in global (start, end, row) order.
struct GpuOp {
  TaskId task;
  uint32_t row = 0;  // of the Trace
  LaneId lane;
  Instant start, end;
  TaskId call;  // None when the call was not recorded
  Instant call_start, call_end;
  uint32_t position = 0;      // in its stream
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
  std::vector<TaskId> tasks;     // in time order
  std::vector<OwnEvent> own;     // in time order
  bool has_marks = false;        // holds ProfilerStep or Optimizer annotations
  bool is_process_main = false;  // tid == pid
  bool backward = false;         // rule T0: runs the backward engine
};

// Typical values of this trace (rules L2, G2, B, E, Q), learned before they are used.
struct TypicalLags {
  Duration launch;                  // call end -> start on an idle stream
  Duration stream_gap[4][4] = {};   // [previous][this] category, see GpuCategory
  Duration event{Duration::Us(1)};  // awaited end -> start on the waiting stream
};

struct Builder {
  Builder(std::shared_ptr<const Trace> t, const BuildOptions& o);

  std::shared_ptr<const Trace> trace_owner;
  const Trace& trace;
  BuildOptions options;
  std::shared_ptr<GraphTables> tables;
  Graph graph;
  BuildReport report;

  std::vector<CallKind> call_kind;  // by NameId of the trace
  // By TaskId: what most rules ask of a task, so that their passes need not read all of it.
  std::vector<Instant> task_start, task_end;  // as recorded
  std::vector<CallKind> kind_of_task;         // kOther where it is no call
  std::vector<HostThread> threads;
  std::vector<GpuOp> ops;                         // global order
  std::vector<std::vector<uint32_t>> stream_ops;  // by LaneId: indices into ops, in order
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

  // Appends a task that was recorded as [begin, end] to its lane.
  TaskId Append(Task task, Instant begin, Instant end);
  TaskId InsertAfter(TaskId after, Task task, Instant begin, Instant end);
  TaskId InsertBefore(TaskId before, Task task, Instant begin, Instant end);
  void SetStart(TaskId t, Instant start);  // recorded_start
  void AddEdge(TaskId from, TaskId to, Duration lag, Rule rule, Anchor from_anchor = Anchor::kEnd,
               Anchor to_anchor = Anchor::kStart);
  // The call with this correlation id (the runtime call when a driver call shares it), or None.
  TaskId CallOf(uint32_t correlation) const;
  void SetCallOf(uint32_t correlation, TaskId call);
  // Sync record of a call (CUPTI synchronization activity), nullptr when there is none.
  const SyncDetail* SyncOf(uint32_t correlation) const;
  // Index into ops of the last operation on `lane` whose call started before `t`; none = kNone.
  uint32_t LastLaunchedBefore(LaneId lane, Instant t) const;
  static constexpr uint32_t kNone = 0xffffffff;
  // Index into ops, kNone for other tasks: those of operations follow one another.
  uint32_t OpOf(TaskId t) const {
    const size_t place = ops.empty() ? 0 : t.index() - ops.front().task.index();
    return place < ops.size() ? static_cast<uint32_t>(place) : kNone;
  }

 private:
  void Note(const Task& task, Instant begin, Instant end);  // in the columns

  IdTable<TaskId> call_of_correlation_{TaskId::None()};
  IdTable<uint32_t> sync_of_correlation_{kNone};
};

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
void EstimateTransfers(Builder& b);   // N2: part of a collective that is not waiting for peers
void AssignSteps(Builder& b);         // I: which step each task belongs to
void MapLayersAndPhases(Builder& b);  // graph/mapper.cc

}  // namespace daydream
