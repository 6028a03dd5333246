// The verbs of a what-if. An Editor works on one graph (a copy of the recorded one), counts what
// it changed and attributes every change to a cause, so that the report can say why.
//
// Removing never breaks order: a removed task keeps its place and its edges but takes no time
// (Task::removed), so whatever waited for it now waits for what it waited for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "graph/graph.h"
#include "transforms/core/ends.h"

namespace daydream {

// What a transform does to the peak of GPU memory. What the edited ops keep for backward is walked
// again (transforms/analysis/memory_profile.h), so that nobody says it here; `kept` gives that its
// text.
struct MemoryChange {
  std::string what;       // "activations of 12 blocks are not kept"
  int64_t bytes = 0;      // negative: saves
  bool estimate = false;  // from shapes, not from recorded allocations
  bool unknown = false;   // it does something, but how much cannot be told; bytes are 0
  bool kept = false;      // bytes are told by the edited ops
  bool at_most = false;   // the peak is this or lower
  double in_step = 0;     // kept, without shapes: factor on what comes and goes; 0: not known
};

// What the new time of a kernel rests on, best first.
enum class TermSource : uint8_t {
  kMeasured,  // the kernel was measured on the new GPU
  kShapes,    // the work that the shapes of its op ask for
  kWaves,     // the recorded launch: waves of blocks
  kClass,     // the resource that limits kernels of its class
};

// Why kernels got their new times: one entry for kernels of one name with one explanation.
struct KernelTerms {
  std::string kernel;
  TermSource source = TermSource::kClass;
  std::string how;  // in words: "by shapes: ..."
  uint64_t kernels = 0;
  Duration before, after;
};

struct Changes {
  uint64_t scaled = 0, set = 0, inserted = 0, removed = 0, fused = 0, moved = 0, edges = 0;
  std::vector<std::string> notes;     // assumptions worth telling: "fp16 would add loss scaling"
  std::vector<std::string> warnings;  // what weakens the answer: "the GPU is not known: ..."
  // What has to hold in the program for the answer to be right, which only its author can tell:
  // "right only if nothing is decided by their values". The model is as good as without.
  std::vector<std::string> conditions;
  std::vector<MemoryChange> memory;
  // Examples that a step handles, times the recorded: step times compare only divided by it.
  double samples = 1;
  size_t places = 0;  // of the program that have to be edited, where their number is known
  // In the place of Advice::effort, risk and how, where this program needs another way; else empty.
  std::string effort, risk, how;
  std::optional<uint64_t> capacity;  // bytes of the memory of a GPU that was put in; 0: not known
  bool bound = false;  // this answer is a limit, although the transform usually predicts
  std::vector<KernelTerms> terms;  // longest first; only transforms with a model of kernels
  // Warnings and conditions: what has to be told however quiet a command is.
  std::vector<std::string> Caveats() const {
    std::vector<std::string> all = warnings;
    all.insert(all.end(), conditions.begin(), conditions.end());
    return all;
  }
  bool any() const { return scaled + set + inserted + removed + fused + moved + edges > 0; }
};

// Names a group of edits for the report: "GEMMs run on tensor cores".
using CauseId = uint16_t;

// What is kept of edits beside the graph that they make. A third of the time of many goes into it.
enum class EditNotes : uint8_t {
  kKept,      // what each of them changed, for what cause, and all that there is to tell
  kOneAStep,  // the same, but of edits of tasks only one or a few of each step that has any
  kNone,      // only whether something changed, and Changes::samples
};

class Editor {
 public:
  // `ends`: where to keep what tasks take at ends of parameters; nullptr: nobody asks.
  explicit Editor(Graph& graph, EndColumns* ends = nullptr, EditNotes notes = EditNotes::kKept);
  // Whether somebody reads causes, edits, notes, warnings, conditions and changes of memory.
  bool keeps_notes() const { return notes_ != EditNotes::kNone; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Changes& changes() { return changes_; }

  // Edits after this call belong to `what`. Equal texts give equal ids.
  CauseId BeginCause(std::string_view what);
  struct Cause {
    std::string what;
    Duration host, gpu;  // sum of the duration changes by side, for ordering the report
  };
  std::span<const Cause> causes() const { return causes_; }
  // What each edit changed, in order: the report switches causes on and off with it
  // (report/predict/causes.h). `moved`: only its place changed.
  struct Edit {
    TaskId task;
    CauseId cause;
    bool moved = false;
    Duration duration, gap;  // after minus before
  };
  std::span<const Edit> edits() const { return edits_; }
  std::vector<Edit> TakeEdits() { return std::move(edits_); }
  // An edge that came, went, or got another lag or origin. One that was relaunched is there twice.
  struct EdgeEdit {
    TaskId from, to;
    Rule rule;
    CauseId cause;
  };
  std::span<const EdgeEdit> edge_edits() const { return edge_edits_; }
  std::vector<EdgeEdit> TakeEdgeEdits() { return std::move(edge_edits_); }
  // Cause of the last edit of each task; kNoCause for untouched tasks.
  static constexpr CauseId kNoCause = 0xffff;
  CauseId CauseOf(TaskId t) const;

  // Live tasks for which `wanted` holds, in TaskId order. O(tasks).
  std::vector<TaskId> Select(const std::function<bool(const Graph&, TaskId)>& wanted) const;

  // Durations; factor >= 0. `at_ends`: factors there, where they are others.
  void Scale(std::span<const TaskId> tasks, double factor, std::span<const double> at_ends = {});
  // The same of gaps that are more than nothing.
  void ScaleGaps(std::span<const TaskId> tasks, double factor,
                 std::span<const double> at_ends = {});
  void SetDuration(TaskId t, Duration d);
  // For transforms whose parameters change times only (Transform::ends). What `of(EndView)` gives
  // at each end of open parameters; empty when nobody asks. Before the edit that it is about.
  template <class Of>
  auto AtEnds(const Of& of) const {
    std::vector<decltype(of(std::declval<const EndView&>()))> all;
    std::optional<size_t> later;  // those of later applications have one answer
    for (size_t e = 0; ends_ != nullptr && e < ends_->size(); ++e) {
      const bool known = later.has_value() && ends_->IsLater(e);
      if (!later.has_value() && ends_->IsLater(e)) later = e;
      all.push_back(known ? all[*later] : of(EndView{graph_, *ends_, e}));
    }
    return all;
  }
  // What `t` takes there, after the edit. Without, what was set last holds for all ends.
  void SetAtEnds(TaskId t, std::span<const Duration> times);
  void SetGapAtEnds(TaskId t, std::span<const Duration> gaps);
  // At this end, by its place in AtEnds(), the graph has other edits.
  void NeedEditsAt(size_t end) { ends_->NeedEdits(end); }
  // So it has at each end at which a task that `decides`, or the gap of any task, is of another
  // length than here: for transforms that choose their edits by those.
  void NeedEditsWhereOthers(absl::FunctionRef<bool(const Task&)> decides);
  // The same where `others(task, duration, gap)` of what a task takes there, if that is not what it
  // takes here.
  void NeedEditsWhere(absl::FunctionRef<bool(const Task&, Duration, Duration)> others);
  // Adds to `sums`, one for each end, by how much `t` and the gap behind it are longer there.
  void AddLongerAtEnds(TaskId t, bool with_gap, std::span<Duration> sums) const;
  void SetGap(TaskId t, Duration gap);
  void SetEarliest(TaskId t, Instant earliest);
  void SetPriority(TaskId t, int32_t priority);
  void SetStep(TaskId t, uint16_t step);
  void Rename(TaskId t, std::string_view name);
  void SetCopy(TaskId t, const CopyDetail& copy);
  void SetKernel(TaskId t, const KernelDetail& kernel);
  // How long ranks take once all are there.
  void SetTransfer(TaskId t, Duration transfer) { graph_.SetTransfer(t, transfer); }
  void SetHolder(TaskId delay, TaskId holder);  // who holds the processors that `delay` waits for
  // For the models of memory, kernels and transfers: what tasks do not tell.
  ModelChanges& model_changes() { return graph_.mutable_model_changes(); }
  OpChange& ChangeOp(ScopeId op) { return model_changes().ops[static_cast<uint32_t>(op.index())]; }
  uint32_t NewUnit() { return ++model_changes().units; }
  void Remove(std::span<const TaskId> tasks);  // duration and gap become 0
  // As Remove(), for host work behind which the program goes on as before: the gap after each task
  // comes behind what is left before it on its lane. Where nothing is, or another lane is waited
  // for in between, the task stays and takes no time. O(tasks, and what was removed before them)
  // for tasks in lane order.
  void RemoveButGap(std::span<const TaskId> tasks);
  void Merge(std::span<const TaskId> tasks);  // as Remove(); another task does their work
  TaskId InsertAfter(TaskId after, Task task);
  TaskId InsertBefore(TaskId before, Task task);
  TaskId Append(Task task);
  void AddEdge(TaskId from, TaskId to, Duration lag = {}, Rule rule = Rule::kTransform,
               Anchor from_anchor = Anchor::kEnd, Anchor to_anchor = Anchor::kStart);
  // Sets the lag of the edge with this index.
  void SetLag(size_t edge, Duration lag);
  // Drops the edges for which `unwanted` holds; returns how many. O(edges).
  size_t DropEdges(const std::function<bool(const Graph&, const Edge&)>& unwanted);
  // Replaces `tasks` (same lane, lane order) by the first of them with `duration` and `name`;
  // the others are removed together with the host work that only launched them.
  TaskId Fuse(std::span<const TaskId> tasks, std::string_view name, Duration duration);
  // Removes GPU tasks together with the delays recorded in front of them, their launch calls
  // (those that launch nothing else), the waiting part of those calls and the gap after them.
  // Launch edges between removed tasks lose their lag. Returns the number of calls removed.
  size_t RemoveWithLaunches(std::span<const TaskId> gpu_tasks);
  LaneId NewLane(std::string_view name, LaneKind kind, LaneOrder order = LaneOrder::kFixed);
  // On the device and rank of `like`, with its launch queue.
  LaneId NewStream(std::string_view name, LaneId like);
  void Move(TaskId t, LaneId lane, TaskId after);
  // `gpu_task`, which was launched by some call, is now launched by `call`. O(1).
  void Relaunch(TaskId gpu_task, TaskId call);
  // Free order by Task::priority on this lane. Counted as an edge: those of the lane's order go.
  void AllowReorder(LaneId lane);

  // The call that launched this GPU task (rule kLaunch), or None. Indexed on first use, O(1).
  TaskId LaunchOf(TaskId gpu_task) const;
  // GPU tasks launched by this call. Indexed on first use.
  std::span<const TaskId> LaunchedBy(TaskId call) const {
    if (!calls_known_) IndexCalls();
    const std::span<const uint32_t> begin = launched_->begin;
    const size_t i = call.index();
    if (i + 1 >= begin.size() || begin[i] == begin[i + 1]) return {};
    return std::span(launched_->tasks).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  // Ends the edits: removed calls no longer wait for anything, and launch queues follow the new
  // positions. O(tasks + edges).
  void Finish();
  // Tasks live before any edit of this editor; later ones were inserted by it.
  size_t recorded_tasks() const { return recorded_tasks_; }

 private:
  struct Launches {
    std::vector<uint32_t> edge;                     // by GPU task: index into edges
    absl::flat_hash_map<TaskId, uint32_t> started;  // the edge from the start of its call
  };
  struct Launched {
    std::vector<uint32_t> begin;  // by call: into `tasks`; one more at the end
    std::vector<TaskId> tasks;
  };
  static Launches FindLaunchEdges(const Graph& graph);
  static Launched FindLaunched(const Graph& graph, const Launches& launches);
  void IndexLaunches() const;
  void IndexCalls() const;
  // A delay that scales with the task that held the processors, as they were at the beginning.
  struct Contended {
    TaskId delay, holder;
    Duration wait, held;
  };
  struct AtFirst {
    std::vector<Contended> contended;
    bool calls_gone = false;  // calls or waits were removed
  };
  static AtFirst Look(const Graph& graph);
  bool IsLaunch(const Edge& e) const;
  void FollowHolders();
  std::vector<Duration> WaitAtEnds(const Contended& c) const;
  void ForgetEnds(TaskId t) {
    if (ends_ != nullptr) ends_->durations.Forget(t);
  }
  CauseId OpenCause();
  void Touch(TaskId t, Duration duration, Duration gap) {  // changes of both
    if (keeps_notes()) Note(t, duration, gap);
  }
  void Note(TaskId t, Duration duration, Duration gap);
  void MoveGap(TaskId from, TaskId behind);
  static std::vector<bool> FindMet(const Graph& graph);
  void TouchEdge(const Edge& e);
  void MarkPositions(TaskId t) {
    if (IsGpu(graph_.task(t).kind)) MarkPositionsOn(graph_.task(t).lane);
  }
  void MarkPositionsOn(LaneId lane);
  Graph& graph_;
  EndColumns* ends_;
  const EditNotes notes_;
  std::optional<EndColumns> ends_at_first_;
  std::shared_ptr<const AtFirst> at_first_;
  Changes changes_;
  std::vector<Cause> causes_;
  CauseId cause_ = kNoCause;
  std::vector<Edit> edits_;
  mutable std::vector<CauseId> cause_of_;  // by task, of the first `told_` edits
  mutable size_t told_ = 0;
  std::vector<EdgeEdit> edge_edits_;
  size_t recorded_tasks_ = 0;
  mutable bool launches_known_ = false;  // launches_ is complete
  mutable bool calls_known_ = false;     // launched_ is complete
  mutable Launches launches_;
  mutable std::shared_ptr<const Launched> launched_;
  std::shared_ptr<const std::vector<bool>> met_;  // by task; on first use
  std::vector<bool> moved_positions_;             // by lane: GPU tasks came or went
};

}  // namespace daydream
