// accumulate: copies the part of a step before the optimizer, and drops the exchange of gradients
// in all passes but the last.
#include "transforms/optimizations/accumulate.h"

#include <algorithm>

#include "transforms/core/transform.h"
#include "transforms/edits/copy_tasks.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kAccumulateParams[] = {
    {.name = "times",
     .unit = Unit::kNone,
     .fallback = 2,
     .min = 1,
     .max = 1024,
     .help = "forward and backward passes for each step of the optimizer",
     .source = "chosen by the user",
     .required = true,
     .whole = true},
};

// A graph of this size takes about a gigabyte.
constexpr size_t kAccumulateMostTasks = 10'000'000;

class Accumulate {
 public:
  Accumulate(int times, Editor& edit) : times_(times), edit_(edit) {}

  absl::Status Run() {
    // A graph may name no step; its tasks are in the first one then.
    const size_t steps = std::max<size_t>(graph().steps().size(), 1);
    parts_.resize(steps);
    FindOptimizers();
    for (size_t s = 0; s < steps; ++s) Collect(static_cast<uint16_t>(s));
    FindFronts();
    size_t tasks = 0, found = 0;
    for (const CopyOrder& part : parts_) {
      tasks += part.tasks.size() * static_cast<size_t>(part.times);
      found += !part.tasks.empty();
    }
    if (found == 0) {
      edit_.changes().notes.push_back("no step of an optimizer after a backward pass");
      return absl::OkStatus();
    }
    if (tasks > kAccumulateMostTasks) {
      return MakeStatus(
          absl::StatusCode::kInvalidArgument,
          {.code = "E0617",
           .what = fmt::format("accumulate: {} passes make a graph of {} million tasks", times_,
                               tasks / 1'000'000),
           .why = "every pass is played task by task",
           .fix = "fewer passes: the time of one more pass shows with 2 or 3 already"});
    }
    edit_.BeginCause("more forward and backward passes");
    if (times_ == 1) {
      for (const CopyOrder& part : parts_) edit_.Scale(part.tasks, 1);
    } else {
      std::erase_if(parts_, [](const CopyOrder& part) { return part.tasks.empty(); });
      CopyParts(edit_, parts_, CopyPlace::kBefore, [&](TaskId t) { return Exchanges(t); });
    }
    TellAccumulate(found, steps);
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  static bool Computes(Phase p) { return p == Phase::kForward || p == Phase::kBackward; }

  // When each step's optimizer begins on the host: its first work after the last of the passes.
  void FindOptimizers() {
    // A graph may name no step; its tasks are in the first one then.
    const size_t steps = std::max<size_t>(graph().steps().size(), 1);
    // The last of the backward pass; without any, of the forward pass.
    std::vector<Instant> passes(steps, Instant::Min());
    std::vector<bool> backward(steps, false);
    begin_.assign(steps, Instant::Min());
    for (const Task& task : graph().tasks()) {
      if (task.removed || !IsHost(task.kind) || !Computes(task.phase)) continue;
      const bool back = task.phase == Phase::kBackward;
      if (back && !backward[task.step]) passes[task.step] = Instant::Min();
      if (back) backward[task.step] = true;
      if (back == backward[task.step]) {
        passes[task.step] = std::max(passes[task.step], task.recorded_start);
      }
    }
    for (const Task& task : graph().tasks()) {
      if (task.removed || !IsHost(task.kind) || task.phase != Phase::kOptimizer ||
          task.recorded_start < passes[task.step] || passes[task.step] == Instant::Min()) {
        continue;
      }
      Instant& begin = begin_[task.step];
      begin = begin == Instant::Min() ? task.recorded_start : std::min(begin, task.recorded_start);
    }
  }

  // Everything that one pass does: host work before the optimizer and the GPU work it launches.
  void Collect(uint16_t step) {
    if (begin_[step] == Instant::Min()) return;
    CopyOrder& part = parts_[step];
    part.times = times_ - 1;
    for (size_t i = 0; i < graph().size(); ++i) {
      const TaskId t(i);
      const Task& task = graph().task(t);
      if (task.step == step && !task.removed && InPass(t, step)) part.tasks.push_back(t);
    }
  }

  // Passes are added at the very beginning of a step, on every lane: what clears gradients there
  // comes after them, on the host as on the GPU.
  void FindFronts() {
    for (size_t l = 0; l < graph().lanes().size(); ++l) {
      for (TaskId t = graph().lanes()[l].first; t.valid(); t = graph().task(t).lane_next) {
        parts_[graph().task(t).step].fronts.try_emplace(LaneId(l), t);
      }
    }
  }

  bool InPass(TaskId t, uint16_t step) const {
    const Task& task = graph().task(t);
    if (task.phase == Phase::kOptimizer) return false;
    if (IsHost(task.kind) || task.kind == TaskKind::kData) {
      return task.recorded_start < begin_[step];
    }
    if (task.kind == TaskKind::kDelay) {
      const TaskId next = task.lane_next;
      return next.valid() && graph().task(next).step == step && IsGpu(graph().task(next).kind) &&
             InPass(next, step);
    }
    const TaskId call = edit_.LaunchOf(t);
    if (!call.valid()) return Computes(task.phase);
    return graph().task(call).step == step && graph().task(call).phase != Phase::kOptimizer &&
           graph().task(call).recorded_start < begin_[step];
  }

  // Collectives, the delays before them, and the calls that launch nothing else.
  bool Exchanges(TaskId t) const {
    const Task& task = graph().task(t);
    if (task.kind == TaskKind::kCollective) return true;
    if (task.kind == TaskKind::kDelay) {
      return task.lane_next.valid() && graph().task(task.lane_next).kind == TaskKind::kCollective;
    }
    if (!IsHost(task.kind)) return false;
    const auto launched = edit_.LaunchedBy(t);
    return !launched.empty() && std::all_of(launched.begin(), launched.end(), [&](TaskId l) {
      return graph().task(l).kind == TaskKind::kCollective;
    });
  }

  void TellAccumulate(size_t found, size_t steps) {
    Changes& changes = edit_.changes();
    changes.samples *= times_;
    changes.notes.push_back(fmt::format(
        "a step is one step of the optimizer after {} passes over batches as recorded", times_));
    if (found < steps) {
      changes.warnings.push_back(
          fmt::format("{} of {} steps show no optimizer after their passes and stay as they are",
                      steps - found, steps));
    }
  }

  int times_;
  Editor& edit_;
  std::vector<Instant> begin_;    // of the optimizer on the host, by step
  std::vector<CopyOrder> parts_;  // by step
};

absl::Status RunAccumulate(const Params& params, Editor& edit) {
  return AccumulatePasses(edit, static_cast<int>(params["times"]));
}

}  // namespace

absl::Status AccumulatePasses(Editor& edit, int times) { return Accumulate(times, edit).Run(); }

constinit const Transform kAccumulate = {
    .name = "accumulate",
    .summary = "Several forward and backward passes for each step of the optimizer",
    .params = kAccumulateParams,
    .apply = &RunAccumulate,
    .model =
        "Everything of a step that comes before the optimizer (getting the batch, forward, loss, "
        "backward; host work and the GPU work it launches) is there `times` times, one pass after "
        "the other, with the dependencies it has. The optimizer runs once, at the end. Collectives "
        "run in the last pass only, as under no_sync(). Passes work on batches as large as "
        "recorded: batch(x1/N) before it keeps the examples of a step.",
    .ignores =
        "Adding to gradients instead of writing them (one more read), scaling the loss, the "
        "communication of sharded parameters, which every pass needs.",
    .sources =
        "PyTorch documentation, DistributedDataParallel.no_sync; follows from the graph otherwise",
    .advice = {.effort = "~5 lines",
               .risk = "convergence",
               .how = "if (i + 1) % N == 0: optimizer.step(); optimizer.zero_grad()"},
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model =
        "None: each pass frees what it kept before the next begins, and gradients are there "
        "already.",
};

}  // namespace daydream
