// Where one step ends and the next begins, seen from the GPU.
#pragma once

#include <optional>
#include <span>
#include <string_view>
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
// (GraphStep::host_led) and that is longer, their windows go from one of these launches to the
// next. Else a host may have lost lead over its GPU, and launched slower than that worked: for
// launches the steps are no longer than they were recorded, and the window of the first begins
// earlier.
//
// Where no GPU work is known before a step, or only some whose launch was not recorded
// (GraphStep::backlog), so that an edit does not tell where it would end, its window begins as long
// before its first GPU work as those of the steps behind it do, in the mean of those that count; as
// that of the next where none of them does. First work is then looked for on lanes that held the
// first work of some step in the recording (GraphLane::marks_steps): what an optimization lets run
// ahead elsewhere is no start of a step. Steps without GPU tasks end with their host tasks, steps
// without tasks are empty. Removed tasks count: they take no time but still mark a place.
//
// Where one step counts, and its host waits for earlier GPU work or that work was launched before
// the recording, it begins no earlier than its host does: such work that is made faster ends
// earlier, but the step is no longer for it. Where its host had begun when work from before the
// recording ended, and the GPU then waited, its window is that of the host. Where no GPU work lies
// before or behind it, its window is that of its host work, or of its GPU work when that takes
// longer.
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
  bool any = false;        // else it has no tasks
  bool counts = true;      // GraphStep::measured
  bool backlog = false;    // GraphStep::backlog
  bool host_led = false;   // GraphStep::host_led, of a step that waits for no work before it
  Duration recorded = {};  // GraphStep::recorded_period
  Instant first, last;
  std::optional<StepWindow> host = {};   // of the lone step: first start and last end of host tasks
  std::optional<Instant> launched = {};  // where the last of StepMarks::launches() arrives
};

// What StepWindows() reads of a task.
struct StepMark {
  uint16_t step = 0;
  uint8_t by = 0;
  bool host = false;
};
StepMark StepMarkOf(const Graph& graph, const Task& task);
// The same, as fast as memory is, where many are asked for: with a mark for each task of `graph`.
std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const StepMark> marks,
                                    std::span<const Instant> start, std::span<const Instant> end);

// Which tasks a step's window goes by.
class StepMarks {
 public:
  explicit StepMarks(const Graph& graph);  // O(tasks + edges)
  bool HasGpu(size_t step) const { return by_[step] >= By::kGpu; }
  // Whether windows depend on where the work of steps begins: none of GPU work is known before one.
  bool FirstsMatter() const;
  // Whether this task, which belongs to a step of the graph, can be the first or last of it.
  bool Begins(const Task& task) const;
  bool Ends(const Task& task) const { return IsGpu(task.kind) || !HasGpu(task.step); }
  // The only step that counts; none when there are more, or fewer.
  std::optional<size_t> lone() const { return lone_; }
  static std::optional<size_t> LoneOf(const Graph& graph);  // O(steps)
  // Of the steps that count and of the one before them, where launches of that are known, and of
  // the lone step: the calls that can be the last to launch GPU work, one a lane. Empty for all
  // others.
  struct Launch {
    TaskId task;
    Duration lag;  // from the call, its end or its start, to where its GPU work may start
    Anchor from = Anchor::kEnd;
  };
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
  friend StepMark StepMarkOf(const Graph& graph, const Task& task);
  template <class MarkOf>
  friend std::vector<StepExtent> ExtentsBy(const Graph& graph, const MarkOf& mark_of,
                                           std::span<const Instant> start,
                                           std::span<const Instant> end);
  enum class By : uint8_t { kAll, kGpu, kMarkedGpu };
  using StepOf = absl::FunctionRef<size_t(TaskId)>;
  StepMarks(const Graph& graph, std::vector<By> by, StepOf step_of);
  static By ByOf(const Graph& graph, const Task& task) {
    if (!IsGpu(task.kind)) return By::kAll;
    return graph.lane(task.lane).marks_steps ? By::kMarkedGpu : By::kGpu;
  }
  static std::vector<By> FindBy(const Graph& graph);
  void FindWaits();
  void FindLaunches(StepOf step_of);

  const Graph& graph_;
  std::vector<By> by_;
  std::optional<size_t> lone_;
  std::vector<Wait> waits_;
  std::vector<std::vector<Launch>> launches_;  // by step; see launches()
};

inline StepMark StepMarkOf(const Graph& graph, const Task& task) {
  return {task.step, static_cast<uint8_t>(StepMarks::ByOf(graph, task)), IsHost(task.kind)};
}

// What the windows above depend on, and they from it.
std::vector<StepExtent> StepExtents(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end);
std::vector<StepExtent> StepExtents(const Graph& graph, std::span<const StepMark> marks,
                                    std::span<const Instant> start, std::span<const Instant> end);
std::vector<StepWindow> StepWindows(std::span<const StepExtent> extents);

// GraphStep::recorded_period anew, of a graph as it was built in which other steps count now: where
// these were limited by their host, it depends on which they are. Tasks end as long after their
// start as they last, without what they waited. GraphStep::recorded_host stays. O(tasks + edges).
void RecordPeriods(Graph& graph);

}  // namespace daydream
