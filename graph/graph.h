// A Graph says what has to happen before what. Tasks sit on lanes, in order; edges join tasks of
// different lanes. Transforms edit a copy of it (transforms/core/editor.h), the simulator plays it
// (simulator/simulate.h). Plain values, no I/O.
//
// The meaning of a graph, which every simulator implements:
//
//   start(t) = max over   lane predecessor p:  end(p) + gap(p), and all earlier tasks of the lane
//                                              likewise (a lane does one thing at a time), or
//                                              start(p) when t overlaps its predecessor
//              each edge e into the start of t: anchor(e.from) + e.lag
//              t.earliest                       (0 unless set)
//   end(t)   = max of     start(t) + duration(t)
//              each edge e into the end of t:   anchor(e.from) + e.lag
//
// where anchor(e.from) is the start or the end of e.from. An edge into an end is a wait: the task
// has done its own work but may not finish before something else. That is how blocking calls are
// modelled, and why their waiting changes when the awaited work changes (docs/how-it-works.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/time.h"
#include "graph/large_pages.h"
#include "graph/model_changes.h"
#include "trace/trace.h"

namespace daydream {

enum class TaskKind : uint8_t {
  kHost,        // CPU work: an op's own time, or time between calls inside a scope
  kCall,        // CUDA/HIP API call
  kWait,        // the part of a call or thread that only waits; duration 0, its end is an edge
  kKernel,      // GPU compute kernel
  kMemcpy,      // copy between memories
  kMemset,      // fill
  kCollective,  // NCCL/RCCL kernel
  kDelay,       // GPU lane: time that no rule explains, or waiting for SMs held by another stream
  kData,        // work of a modelled data-loader worker
};
constexpr bool IsGpu(TaskKind k) {
  return k == TaskKind::kKernel || k == TaskKind::kMemcpy || k == TaskKind::kMemset ||
         k == TaskKind::kCollective;
}
constexpr bool IsHost(TaskKind k) {
  return k == TaskKind::kHost || k == TaskKind::kCall || k == TaskKind::kWait;
}

enum class Phase : uint8_t { kNone, kForward, kBackward, kOptimizer, kData, kComm };

// Why an edge exists (docs/how-it-works.md has the evidence for each).
enum class Rule : uint8_t {
  kLaneOrder,   // same thread or stream, recorded order; implicit in the lane, never in edges()
  kLaunch,      // a call returns, its GPU work may start
  kEventWait,   // cudaStreamWaitEvent: one stream waits for a point of another
  kHostWait,    // a blocking call returns after the GPU work it waits for
  kHandOff,     // one CPU thread waits for another (backward pass, loader)
  kQueue,       // a launch call waits until the stream's launch queue has room
  kCollective,  // ranks meet
  kTransform,   // added by a transform
};

enum class Anchor : uint8_t { kStart, kEnd };

struct Edge {
  TaskId from, to;
  Duration lag;  // may be negative
  Rule rule = Rule::kTransform;
  Anchor from_anchor = Anchor::kEnd;
  Anchor to_anchor = Anchor::kStart;
};

// One uninterrupted piece of work on one lane. Plain data, 80 bytes.
struct Task {
  Instant recorded_start;  // as measured; for reports and calibration, never read by a simulator
  Duration duration;       // own work, >= 0; waiting is not part of it
  Duration gap;            // the lane stays busy this long after the end: host work outside any
                           // op, dead time between kernels. Negative only between GPU tasks
                           // that overlap by a little (programmatic launch).
  Instant earliest;        // not before this instant; 0 for nearly all
  TaskId lane_prev, lane_next;
  NameId name;
  LaneId lane;
  ScopeId scope;  // innermost scope of the host code that did or launched it
  LayerId layer;
  uint32_t event = Id<void>::kNoneValue;   // row of the Trace; none for inserted and split tasks
  uint32_t detail = Id<void>::kNoneValue;  // row of kernels or copies, by kind
  int32_t priority = 0;                    // only read on lanes that may reorder; higher first
  uint16_t step = 0;                       // index into steps()
  uint16_t copy = 0;  // of recorded work that was repeated: one number for each repetition
  TaskKind kind = TaskKind::kHost;
  Phase phase = Phase::kNone;
  bool removed = false;   // takes no time and is not counted, but still passes order on
  bool overlaps = false;  // may run beside its lane predecessor: it only starts no earlier
  bool merged = false;    // removed, but another task does its work
};

enum class LaneOrder : uint8_t {
  kFixed,     // tasks run in lane order
  kPriority,  // any ready task may run next: by (priority, ready time, TaskId)
};

struct GraphLane {
  Lane lane;
  LaneOrder order = LaneOrder::kFixed;
  TaskId first, last;
  // Launch calls may run this many GPU operations ahead of the stream; 0 = no limit known.
  uint32_t queue_depth = 0;
  // Streams of one GPU of a rank with the same number wait in one launch queue; 0 = in its own.
  uint32_t shared_queue = 0;
};

// A named range on a CPU thread; scopes of one thread nest.
struct Scope {
  NameId name;
  ScopeId parent;
  EventKind kind = EventKind::kOp;  // kOp, kAnnotation or kFrame
  LaneId lane;
  Instant begin, end;                      // as measured
  uint32_t detail = Id<void>::kNoneValue;  // row of ops
};

struct Layer {
  NameId name;  // "layer1.0.conv1", or "conv2d #7" when no module names were recorded
  LayerId parent;
};

// The first GPU work of a step as recorded, and the call that launched it. None where the graph was
// not built from a recording, or the call was not recorded.
struct StepBegin {
  TaskId call, work;
  friend bool operator==(const StepBegin&, const StepBegin&) = default;
};

// One training step as the graph sees it.
struct GraphStep {
  std::string label;
  bool measured = true;      // false: warm-up or stub, simulated but not counted
  Duration recorded_period;  // as measured, by the same definition as StepPeriods()
  // In the recording its GPU work was launched when that of the step before was done: the step
  // waited for its host.
  bool host_led = false;
  // So it was because the host had waited for that GPU work.
  bool host_waited = false;
  // What of its GPU work ends last was launched before the recording, or while the recorder was
  // off: an edit does not tell where it would have ended.
  bool backlog = false;
  StepBegin begin = {};
  // Of the lone step (graph/step_windows.h), where its host's work took longer than the step, out
  // of a lead that the host had: how long that work was.
  Duration recorded_host = {};
};

// Names and details that tasks refer to. Shared by all copies of a graph; what transforms add
// goes to the copy's own overlay.
struct GraphTables {
  std::shared_ptr<const Trace> trace;  // null for graphs read from text
  std::shared_ptr<StringPool> names;
  std::vector<KernelDetail> kernels;
  std::vector<CopyDetail> copies;
  std::vector<OpDetail> ops;
  std::vector<CollectiveDetail> collectives;
  std::vector<Scope> scopes;
  std::vector<Device> devices;
};

class GraphFacts;   // graph/facts.h
class StalledTime;  // graph/stalled_time.h

class Graph {
 public:
  Graph();
  explicit Graph(std::shared_ptr<const GraphTables> tables);

  // --- reading
  size_t size() const { return tasks_.size(); }  // removed tasks keep their row
  const Task& task(TaskId t) const { return tasks_[t.index()]; }
  std::span<const Task> tasks() const { return tasks_; }
  std::span<const Edge> edges() const { return edges_; }  // order-free; lane order is not in it
  std::span<const GraphLane> lanes() const { return lanes_; }
  const GraphLane& lane(LaneId l) const { return lanes_[l.index()]; }
  std::span<const Layer> layers() const { return layers_; }
  std::span<const GraphStep> steps() const { return steps_; }
  const GraphTables& tables() const { return *tables_; }
  std::string_view Name(NameId id) const;
  std::string_view TaskName(TaskId t) const { return Name(task(t).name); }
  // Details of a task, nullptr when it has none. Valid until the graph is edited.
  const KernelDetail* Kernel(TaskId t) const;
  const CopyDetail* Copy(TaskId t) const;
  const CollectiveDetail* Collective(TaskId t) const;
  const Scope* ScopeOf(TaskId t) const;
  // Detail of the scope's op (shapes, sequence number), nullptr for other scopes. Shapes are those
  // that transforms gave it, else as recorded.
  const OpDetail* OpOf(ScopeId s) const;
  // How long the transfer of this collective takes once all ranks are there; its whole duration
  // when that could not be told from the trace (rule N2).
  Duration Transfer(TaskId t) const;
  const ModelChanges& model_changes() const { return model_changes_; }
  // Whether OpOf() tells of some op other shapes than were recorded.
  bool reshaped() const { return !reshaped_.empty(); }
  // Where something held up the recorded program (graph/stalled_time.h).
  const StalledTime& stalled_time() const { return *stalled_time_; }
  // What is known of tables() alone, and of a wiring() (graph/facts.h).
  GraphFacts& table_facts() const { return *table_facts_; }
  // What is known of the graph as it is now (graph/facts.h); nullptr: nobody shares it.
  GraphFacts* facts() const { return facts_.get(); }
  // A number that all graphs have which differ in durations and gaps of retimed() only, as they are
  // copies of one and nothing else was edited; 0: not known.
  uint64_t structure() const { return structure_; }
  // Tasks whose duration or gap was set since that number was given; some more than once.
  std::span<const TaskId> retimed() const { return retimed_; }
  // A number that a graph has in common with its copies for as long as nothing but durations and
  // gaps is edited; 0: not known.
  uint64_t wiring() const { return wiring_; }
  // An evaluation order (graph/order.h) of the graph as it was when that was told. Copies keep it
  // whatever becomes of them: who asks has to look whether it still is one. Null: not known.
  const std::vector<TaskId>* likely_order() const { return likely_order_.get(); }

  // --- writing; O(1) each. Tasks are appended to their lane, or put after `after`.
  NameId AddName(std::string_view text);
  LaneId AddLane(const GraphLane& lane);
  LayerId AddLayer(const Layer& layer);
  uint16_t AddStep(GraphStep step);
  TaskId Append(const Task& task);
  // An empty task, which the caller fills in before anything else is edited: all but its lane and
  // its neighbours there. For many tasks: one that is made elsewhere and copied takes as long
  // again.
  Task& AppendTo(LaneId lane);
  TaskId InsertAfter(TaskId after, Task task);  // same lane as `after`
  TaskId InsertBefore(TaskId before, Task task);
  void MoveToLane(TaskId t, LaneId lane, TaskId after);  // after = None: at the front
  void AddEdge(const Edge& e) { Edited().edges_.push_back(e); }
  uint32_t AddKernelDetail(const KernelDetail& d);
  uint32_t AddCopyDetail(const CopyDetail& d);
  uint32_t AddCollectiveDetail(const CollectiveDetail& d);  // for KernelDetail::collective
  void SetTransfer(TaskId t, Duration transfer);
  void SetShapes(ScopeId s, NameId shapes);  // REQUIRES: OpOf(s)
  ModelChanges& mutable_model_changes() { return Edited().model_changes_; }
  Task& mutable_task(TaskId t) { return Edited().tasks_[t.index()]; }
  // Unlike mutable_task(), these keep structure() and wiring().
  void SetDuration(TaskId t, Duration d) { Retimed(t).duration = d; }
  void SetGap(TaskId t, Duration gap) { Retimed(t).gap = gap; }
  GraphLane& mutable_lane(LaneId l) { return Edited().lanes_[l.index()]; }
  GraphStep& mutable_step(size_t i) { return Edited().steps_[i]; }
  std::vector<Edge>& mutable_edges() { return Edited().edges_; }
  void SetStalledTime(StalledTime time);
  void Reserve(size_t tasks, size_t edges);
  // A graph with the lanes (empty), layers and names of this one, and no tasks, edges and steps.
  Graph WithoutTasks() const;
  // From here on, until it is edited, this graph shares what is found out about equal ones.
  void ShareFacts(std::shared_ptr<GraphFacts> facts) { facts_ = std::move(facts); }
  // REQUIRES: no other graph has this number, but copies of this one.
  void NameStructure(uint64_t number);
  // REQUIRES: each task of this graph once.
  void TellLikelyOrder(std::vector<TaskId> order);
  // Gives this graph a wiring() of its own, so that one plan plays all copies. For a graph that is
  // done: every edit but of durations and gaps forgets it.
  void NameWiring();
  // Undoes all edits. REQUIRES: structure() is not 0, and `as_named` is the graph as it was when
  // that number was given. O(retimed()).
  void UndoRetimed(const Graph& as_named);

 private:
  Graph& Edited() {
    if (facts_ != nullptr) facts_.reset();
    ForgetStructure();
    return *this;
  }
  void ForgetStructure() {
    wiring_ = 0;
    if (structure_ == 0) return;
    structure_ = 0;
    retimed_.clear();
  }
  Task& Retimed(TaskId t) {
    if (facts_ != nullptr) facts_.reset();
    if (structure_ != 0 && (retimed_.empty() || retimed_.back() != t)) retimed_.push_back(t);
    return tasks_[t.index()];
  }
  void Link(TaskId t, LaneId lane, TaskId after);

  std::shared_ptr<const GraphTables> tables_;
  std::shared_ptr<GraphFacts> table_facts_;
  std::shared_ptr<const StalledTime> stalled_time_;
  std::vector<Task> tasks_;
  std::vector<Edge> edges_;
  std::vector<GraphLane> lanes_;
  std::vector<Layer> layers_;
  std::vector<GraphStep> steps_;
  // Overlay: what this copy added to the shared tables. Its ids have the top bit set.
  std::vector<std::string> added_names_;
  // By hash; where another text has that, by the next number that is free.
  absl::flat_hash_map<uint64_t, NameId> added_name_ids_;
  std::vector<KernelDetail> added_kernels_;
  std::vector<CopyDetail> added_copies_;
  std::vector<OpDetail> added_ops_;
  std::vector<CollectiveDetail> added_collectives_;
  std::unordered_map<uint32_t, uint32_t> reshaped_;     // row of added_ops_ by scope
  std::vector<std::pair<TaskId, Duration>> transfers_;  // sorted by task
  ModelChanges model_changes_;
  std::shared_ptr<GraphFacts> facts_;
  std::shared_ptr<const std::vector<TaskId>> likely_order_;
  uint64_t structure_ = 0, wiring_ = 0;
  std::vector<TaskId> retimed_;
};

inline Task& Graph::AppendTo(LaneId lane) {
  GraphLane& list = Edited().lanes_[lane.index()];
  const TaskId id(tasks_.size());
  Task& task = tasks_.emplace_back();
  FetchToWrite(&task, kTasksAhead);
  task.lane = lane;
  task.lane_prev = list.last;
  (list.last.valid() ? tasks_[list.last.index()].lane_next : list.first) = id;
  list.last = id;
  return task;
}

}  // namespace daydream
