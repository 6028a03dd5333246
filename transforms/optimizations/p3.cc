// p3: gradients in slices, those of the first layers first, each awaited by its own layer.
#include <algorithm>
#include <map>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/exchange.h"
#include "transforms/parallel/gradients.h"

namespace daydream {
namespace {

constexpr ParamSpec kP3Params[] = {
    {.name = "slice",
     .fallback = 40000,
     .min = 1000,
     .max = 1e9,
     .help = "elements that are sent together at most",
     .source = "MXNET_KVSTORE_BIGARRAY_BOUND of the published implementation (anandj91/p3)",
     .whole = true},
    kExchangeFabricParam,
};

// A graph of this size takes about a gigabyte.
constexpr double kMostSlices = 5e6;

class Slices {
 public:
  Slices(const Params& params, Editor& edit, Exchanges& exchanges)
      : edit_(edit), x_(exchanges), slice_(params["slice"]) {}

  absl::Status Run() {
    if (graph().steps().size() < 2) return OneStep();
    DD_ASSIGN_OR_RETURN(const GradientList gradients, FindGradients(graph()));
    DD_RETURN_IF_ERROR(CheckSize(gradients));
    DD_RETURN_IF_ERROR(Measure());
    for (const Exchange& e : x_.all) edit_.RemoveWithLaunches({&e.collective, 1});
    lane_ = edit_.NewStream("slices of gradients", x_.compute);
    edit_.AllowReorder(lane_);
    FindForward();
    for (const StepGradients& step : gradients.steps) Add(step);
    TellP3();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  static absl::Status OneStep() {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0826",
                       .what = "p3: the next step is not in this trace",
                       .why = "what it gains is that the next forward pass begins before the last "
                              "gradients are there",
                       .fix = "record two steps or more"});
  }

  absl::Status CheckSize(const GradientList& gradients) const {
    double count = 0;
    for (const StepGradients& step : gradients.steps) {
      for (const Gradient& g : step.ready)
        count += 1 + static_cast<double>(g.size.elements) / slice_;
    }
    if (count <= kMostSlices) return absl::OkStatus();
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0617",
         .what = fmt::format("p3: slices make a graph of {:.0f} million tasks", count / 1e6),
         .why = "every slice is played by itself",
         .fix = "larger slices"});
  }

  absl::Status Measure() {
    ranks_ = x_.all.front().ranks;
    DD_ASSIGN_OR_RETURN(long_, MeasureLongMessages([this](double bytes) {
                          return x_.TimeOf(CollectiveKind::kAllReduce, bytes, ranks_);
                        }));
    return absl::OkStatus();
  }

  // The first kernel of each layer's forward pass, step by step; and of the step.
  void FindForward() {
    for (TaskId t = graph().lane(x_.compute).first; t.valid(); t = graph().task(t).lane_next) {
      const Task& task = graph().task(t);
      if (task.removed || task.kind != TaskKind::kKernel || task.phase != Phase::kForward) continue;
      forward_.try_emplace({task.step, task.layer}, t);
      begin_.try_emplace(task.step, t);
    }
  }

  TaskId KernelBefore(TaskId host) const {
    for (TaskId t = host; t.valid(); t = graph().task(t).lane_prev) {
      for (TaskId k : edit_.LaunchedBy(t)) {
        if (graph().task(k).lane == x_.compute && k.index() < edit_.recorded_tasks()) return k;
      }
    }
    return {};
  }

  // Where the layer of this gradient begins in the next step.
  TaskId AwaitedBy(TaskId kernel, uint16_t step) {
    const auto next = static_cast<uint16_t>(step + 1);
    const auto begin = begin_.find(next);
    if (begin == begin_.end()) return {};
    const LayerId layer = kernel.valid() ? graph().task(kernel).layer : LayerId();
    if (layer.valid()) {
      if (auto it = forward_.find({next, layer}); it != forward_.end()) return it->second;
    }
    ++unplaced_;
    return begin->second;
  }

  void Add(const StepGradients& step) {
    for (size_t i = 0; i < step.ready.size(); ++i) {
      const Gradient& g = step.ready[i];
      const TaskId kernel = KernelBefore(g.last);
      const TaskId waits = AwaitedBy(kernel, step.step);
      auto left = static_cast<double>(g.size.elements);
      for (; left > 0; left -= slice_) {
        const double bytes = std::min(left, slice_) * g.size.element_bytes;
        const TaskId t = Slice(g, kernel, step.step, bytes);
        // Gradients of the first layers become ready last.
        edit_.SetPriority(t, static_cast<int32_t>(i));
        if (waits.valid()) edit_.AddEdge(t, waits, long_.latency);
        ++slices_;
      }
    }
  }

  TaskId Slice(const Gradient& g, TaskId kernel, uint16_t step, double bytes) {
    const TaskId t = AddCollective(edit_,
                                   {.kind = CollectiveKind::kAllReduce,
                                    .bytes = static_cast<uint64_t>(bytes),
                                    .ranks = ranks_,
                                    .name = kSliceName,
                                    .step = step},
                                   {.stream = lane_, .call = {}, .compute = {}, .beside = g.last},
                                   Duration::FromDouble(bytes * long_.ns_per_byte));
    edit_.AddEdge(g.last, t);
    if (kernel.valid()) edit_.AddEdge(kernel, t, {}, Rule::kEventWait);
    return t;
  }

  void TellP3() {
    auto& changes = edit_.changes();
    changes.notes.push_back(
        fmt::format("{} slices a step", slices_ / std::max<size_t>(graph().steps().size(), 1)));
    if (unplaced_ > 0) {
      changes.warnings.push_back(fmt::format(
          "{} gradients are of layers that no kernel of the next forward pass names: the whole "
          "pass waits for them",
          unplaced_));
    }
  }

  Editor& edit_;
  Exchanges& x_;
  const double slice_;
  int ranks_ = 2;
  LongMessages long_;
  LaneId lane_;
  std::map<std::pair<uint16_t, LayerId>, TaskId> forward_;
  std::map<uint16_t, TaskId> begin_;
  size_t slices_ = 0, unplaced_ = 0;
};

absl::Status RunP3(const Params& params, Editor& edit) {
  edit.BeginCause("gradients in slices, first layers first");
  DD_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::Find(edit, params.text("fabric")));
  return Slices(params, edit, exchanges).Run();
}

}  // namespace

constinit const Transform kP3 = {
    .name = "p3",
    .summary = "P3: gradients are exchanged in slices, those of the first layers first",
    .params = kP3Params,
    .apply = &RunP3,
    .model =
        "Each gradient is cut into slices, which are pushed and pulled as soon as it is ready, at "
        "the rate of long messages. A slice of an earlier layer goes before all that wait. The "
        "optimizer no longer waits for them; in the next step the first kernel of a layer's "
        "forward pass does, an empty message's time later.",
    .ignores =
        "Kernels that share the GPU with an exchange are not slowed down; servers are never the "
        "limit. The optimizer's kernels stay where they are, as if servers did not work for them. "
        "What exchanges beside the gradients.",
    .sources =
        "Jayarajan et al. 2019 (Priority-based Parameter Propagation, MLSys); "
        "Daydream (ATC'20), section 5",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: slices are parts of the gradients.",
};

}  // namespace daydream
