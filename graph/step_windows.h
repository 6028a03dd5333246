// Where one step ends and the next begins, seen from the GPU.
#pragma once

#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/time.h"
#include "graph/graph.h"

namespace daydream {

// Label of the step that holds what came before the first mark, where that step counts.
inline constexpr std::string_view kBeforeTheFirstStep = "(before the first step)";

struct StepWindow {
  Instant begin, end;
  Duration length() const { return end - begin; }
};

// One window a step: from the end of the last GPU work of the step before to the end of its own. So
// what the host does before the first GPU work of a step is time of that step, and windows of
// neighbours meet: together they take from the end of the one before to the end of the last.
//
// GPU work that ends behind its host ends the sooner the faster it is. So the steps that count take
// together no less than from the last launch before them to their last, as they arrive at the GPU:
// that is what the host takes. Where the first of them found an idle GPU when it was recorded
// (GraphStep::host_led), not because the host waited for it (GraphStep::host_waited), and that is
// longer, their windows go from one of these launches to the next. Else a host may have lost lead
// over its GPU, and launched slower than that worked: for launches the steps are no longer than
// they were recorded, and the window of the first begins earlier.
//
// The lone step is the only one that counts, or the first of them where no GPU work is known before
// it, or only such whose launch was not recorded (GraphStep::backlog): an edit does not tell where
// that would end. Its window begins no earlier than its host, or than its host waits for earlier
// work: such work that is made faster ends earlier, but the step is no longer for it. Where its
// host had begun when work from before the recording ended, and the GPU then waited, its window is
// that of the host. Where no GPU work is known before it, its window is that of its host work, up
// to where the host begins the next one, or of its GPU work when that takes longer.
//
// Steps without GPU tasks end with their host tasks, steps without tasks are empty. Removed tasks
// count: they take no time but still mark a place.
//
// The end of a step's GPU work follows the host while the host is the bottleneck and the GPU's
// backlog while the GPU is, so the windows of a steady run have the steady period in both cases
// (docs/decisions/004-step-time-is-the-gpu-period.md).
//
// `start` and `end` are indexed by TaskId: a Timeline's columns or recorded instants.
// O(tasks + edges).
std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end);

// First start and last end of the GPU tasks of a step, or of all its tasks when it has none.
struct StepExtent {
  bool gpu = false;
  bool any = false;          // else it has no tasks
  bool counts = true;        // GraphStep::measured
  bool backlog = false;      // GraphStep::backlog
  bool host_led = false;     // GraphStep::host_led, of a step that waits for no work before it
  bool host_waited = false;  // GraphStep::host_waited
  Duration recorded = {};    // GraphStep::recorded_period
  Instant first, last;
  StepWindow all = {};                   // of all its tasks
  std::optional<StepWindow> host = {};   // of the lone step: from its host tasks to the next one's
  std::optional<Instant> launched = {};  // where the last of StepMarks::launches() arrives
};

// What StepWindows() reads of a task.
struct StepMark {
  uint16_t step = 0;
  bool gpu = false;
  bool host = false;
};
inline StepMark StepMarkOf(const Task& task) {
  return {task.step, IsGpu(task.kind), IsHost(task.kind)};
}
class LaunchCalls;
// The same, as fast as memory is, where many are asked for: with a mark for each task of `graph`,
// whose step may be another than the task's, and LaunchCalls::Of() the graph.
std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const StepMark> marks,
                                    const LaunchCalls& calls, std::span<const Instant> start,
                                    std::span<const Instant> end);

// The calls that launch GPU work, which hang on nothing but Graph::wiring().
class LaunchCalls {
 public:
  explicit LaunchCalls(const Graph& graph);  // keeps no reference; O(tasks + edges)
  // Found once for all graphs of a wiring(), and for those that share facts (graph/facts.h).
  static std::shared_ptr<const LaunchCalls> Of(const Graph& graph);
  struct Call {
    TaskId task;
    uint32_t edges_begin, edges_end;  // in edges()
  };
  std::span<const std::vector<Call>> lanes() const { return lanes_; }  // of each the last first
  std::span<const uint32_t> edges() const { return edges_; }           // places in Graph::edges()

 private:
  // Of a lane, from behind, those that launch: `count` of each becomes where it begins in edges().
  void Take(TaskId t, std::vector<uint32_t>& count, std::vector<Call>& lane);
  void FillEdges(const Graph& graph, std::vector<uint32_t>& count);

  uint32_t size_ = 0;  // of edges_
  std::vector<std::vector<Call>> lanes_;
  std::vector<uint32_t> edges_;
};

// When the tasks of each step begin and end, told of one task after the other: for who reads all of
// them anyway.
class TasksOfSteps {
 public:
  explicit TasksOfSteps(const Graph& graph);  // which has all its steps; keeps no reference
  // Neighbours are mostly of one step and kind: what they have in common is noted once.
  void Add(const StepMark& mark, Instant start, Instant end) {
    if (std::bit_cast<uint32_t>(mark) != std::bit_cast<uint32_t>(alike_)) NoteAlike(mark);
    if (start < first_) first_ = start;
    if (end > last_) last_ = end;
  }
  // Several tasks of one mark.
  void Add(const StepMark& mark, const StepWindow& from_first_to_last);

  struct OfStep {
    bool any = false, gpu = false;
    StepWindow all = {kLate, kEarly}, of_gpu = {kLate, kEarly};  // from the first to the last
    std::optional<StepWindow> host = {};                         // of the lone step
  };
  // Of all tasks that were added.
  std::span<const OfStep> steps() { return NoteAlike({}), std::span<const OfStep>(steps_); }
  // Where the host begins the step behind the lone one; none: it does not.
  std::optional<Instant> next_host() const {
    return next_host_ == kLate ? std::nullopt : std::optional(next_host_);
  }

 private:
  static constexpr Instant kEarly{std::numeric_limits<int64_t>::min()};
  static constexpr Instant kLate{std::numeric_limits<int64_t>::max()};
  // What comes next has this mark.
  void NoteAlike(const StepMark& next) {
    if (first_ != kLate) Add(alike_, {first_, last_});
    alike_ = next, first_ = kLate, last_ = kEarly;
  }

  std::optional<size_t> lone_;
  std::vector<OfStep> steps_;
  Instant next_host_ = kLate;
  StepMark alike_;  // of the tasks that came last, and from when to when they take
  Instant first_ = kLate, last_ = kEarly;
};

// Which tasks a step's window goes by.
class StepMarks {
 public:
  explicit StepMarks(const Graph& graph);  // O(tasks + edges)
  bool HasGpu(size_t step) const { return has_gpu_[step]; }
  // The lone step, if there is one; see above.
  std::optional<size_t> lone() const { return lone_; }
  static std::optional<size_t> LoneOf(const Graph& graph);  // O(steps)
  // Whether it is the only one that counts.
  static bool OnlyOne(const Graph& graph);  // O(steps)
  // Whether it is not known where GPU work before this step would end under an edit.
  static bool UnknownBefore(const Graph& graph, size_t step);
  // Of the steps that count and of the one before them, where launches of that are known, and of
  // the lone step: the calls that can be the last to launch GPU work, one a lane. Empty for all
  // others.
  struct Launch {
    TaskId task;
    Duration lag;  // from the call, its end or its start, to where its GPU work may start
    Anchor from = Anchor::kEnd;
  };
  using Launches = std::vector<std::vector<Launch>>;  // by step
  std::span<const Launch> launches(size_t step) const {
    return step < launches_.size() ? launches_[step] : std::span<const Launch>();
  }
  // Host tasks of the lone step that wait for GPU work of earlier ones. What the host does before
  // the first of them lies beside that work and is no part of the step.
  struct Wait {
    TaskId task;
    Duration lag;  // from the end of the GPU work to that of the wait
  };
  std::span<const Wait> waits() const { return waits_; }

 private:
  template <class MarkOf>
  friend std::vector<StepExtent> ExtentsBy(const Graph& graph, const MarkOf& mark_of,
                                           const LaunchCalls* calls, std::span<const Instant> start,
                                           std::span<const Instant> end);
  friend std::vector<StepExtent> StepExtents(const Graph& graph, TasksOfSteps tasks,
                                             const Launches* launches,
                                             std::span<const Instant> start,
                                             std::span<const Instant> end);
  using StepOf = absl::FunctionRef<size_t(TaskId)>;
  // Without `calls` these are LaunchCalls::Of() the graph, where any are asked for.
  StepMarks(const Graph& graph, std::vector<bool> has_gpu, StepOf step_of,
            const LaunchCalls* calls);
  // With the launches of all steps.
  StepMarks(const Graph& graph, std::vector<bool> has_gpu, const Launches& launches);
  void FindWaits();
  // Those that launches() are asked of: from the first to the one behind the last.
  std::pair<size_t, size_t> StepsThatLaunch() const;
  void FindLaunches(StepOf step_of, const LaunchCalls* calls);

  const Graph& graph_;
  std::vector<bool> has_gpu_;  // by step
  std::optional<size_t> lone_;
  std::vector<Wait> waits_;
  Launches launches_;  // see launches()
};

// What the windows above depend on, and they from it.
std::vector<StepExtent> StepExtents(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end);
// With `tasks`, all of the graph. Without `launches` these are found, where any are asked for.
std::vector<StepExtent> StepExtents(const Graph& graph, TasksOfSteps tasks,
                                    const StepMarks::Launches* launches,
                                    std::span<const Instant> start, std::span<const Instant> end);
std::vector<StepWindow> StepWindows(std::span<const StepExtent> extents);

// GraphStep::recorded_period anew, of a graph as it was built in which other steps count now: where
// these were limited by their host, it depends on which they are. Tasks end as long after their
// start as they last, without what they waited. GraphStep::recorded_host stays. O(tasks + edges).
void RecordPeriods(Graph& graph);

}  // namespace daydream
