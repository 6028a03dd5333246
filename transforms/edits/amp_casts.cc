#include "transforms/edits/amp_casts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "transforms/analysis/precision.h"
#include "transforms/core/floor_param.h"
#include "transforms/edits/inserted_kernel.h"

namespace daydream {
namespace {

// A cast reads 4 bytes an element and writes 2, or the other way round; a narrow one reads 2 and
// writes twice, as it is and transposed (Transformer Engine, cast_transpose).
constexpr double kBytesPerElement = 6;
constexpr double kWideBytes = 2;
double NarrowBytesPerElement(DType dtype) { return kWideBytes + 2 * DTypeBytes(dtype); }
// From the end of the check to the return of the host's read: docs/how-it-works.md, blocking calls.
constexpr Duration kReadBack = Duration::Us(10);

}  // namespace

void AddCasts(Editor& edit, std::span<const Cast> casts, const HostCosts& costs, Duration floor) {
  edit.BeginCause("casts added");
  const NameId op_name = edit.graph().AddName("aten::to (autocast)");
  const NameId call_name = edit.graph().AddName("cudaLaunchKernel");
  const NameId fp16_name = edit.graph().AddName("cast_elementwise_fp16");
  const NameId bf16_name = edit.graph().AddName("cast_elementwise_bf16");
  const NameId fp8_name = edit.graph().AddName("cast_transpose_amax_fp8");
  const NameId nvfp4_name = edit.graph().AddName("cast_transpose_nvfp4");
  const NameId amax_name = edit.graph().AddName("amax_nvfp4");
  KnownDevices devices(edit.graph());
  const auto add = [&](const Cast& cast, NameId name, NameId op, double bytes) {
    Duration by_bytes;
    if (const DeviceSpec* device = devices.Of(cast.at); device != nullptr) {
      by_bytes = Duration::FromDouble(bytes * 1e9 / device->SustainedBandwidth() *
                                      static_cast<double>(cast.elements));
    }
    const TaskId added = InsertKernel(edit,
                                      {.at = cast.at,
                                       .after = cast.after,
                                       .name = name,
                                       .duration = std::max(floor, by_bytes),
                                       .op = op,
                                       .call = call_name},
                                      costs);
    edit.SetAtEnds(added, edit.AtEnds([&](const EndView& at) {
      return std::max(FloorOf(at.params()), by_bytes);
    }));
  };
  for (const Cast& cast : casts) {
    if (!cast.narrow) {
      add(cast, cast.dtype == DType::kFp16 ? fp16_name : bf16_name, op_name, kBytesPerElement);
      continue;
    }
    // Scales of blocks come from the largest value of the whole tensor, which has to be known
    // before (arXiv:2509.25149, appendix B); one op launches both kernels.
    const bool nvfp4 = cast.dtype == DType::kNvfp4;
    if (nvfp4) add(cast, amax_name, op_name, kWideBytes);
    add(cast, nvfp4 ? nvfp4_name : fp8_name, nvfp4 ? NameId() : op_name,
        NarrowBytesPerElement(cast.dtype));
  }
}

size_t AddGradientScaling(Editor& edit, double share, Duration floor) {
  const Graph& graph = edit.graph();
  struct OptimizerStep {
    TaskId first;
    Duration time;
    std::vector<TaskId> kernels;
  };
  std::map<uint16_t, OptimizerStep> steps;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.removed || task.kind != TaskKind::kKernel || task.phase != Phase::kOptimizer) continue;
    OptimizerStep& step = steps[task.step];
    step.time += task.duration;
    step.kernels.push_back(TaskId(i));
    if (!step.first.valid() || task.recorded_start < graph.task(step.first).recorded_start) {
      step.first = TaskId(i);
    }
  }
  edit.BeginCause("gradients are checked and unscaled");
  const HostCosts costs = MeasureHostCosts(graph);
  const NameId check = edit.graph().AddName("_amp_foreach_non_finite_check_and_unscale_");
  const NameId launch = edit.graph().AddName("cudaLaunchKernel");
  const NameId read = edit.graph().AddName("cudaStreamSynchronize");
  size_t added = 0;
  for (const auto& [index, step] : steps) {
    TaskId before = edit.LaunchOf(step.first);
    if (!before.valid()) continue;
    const Task kernel = graph.task(step.first), host = graph.task(before);
    TaskId checked =
        edit.InsertBefore(step.first, {.recorded_start = kernel.recorded_start,
                                       .duration = std::max(floor, step.time.Scaled(share)),
                                       .name = check,
                                       .lane = kernel.lane,
                                       .scope = kernel.scope,
                                       .step = kernel.step,
                                       .kind = TaskKind::kKernel,
                                       .phase = Phase::kOptimizer});
    ++added;
    edit.SetAtEnds(checked, edit.AtEnds([&, &kernels = step.kernels](const EndView& at) {
      Duration time;
      for (TaskId t : kernels) time += at.DurationOf(t);
      return std::max(FloorOf(at.params()), time.Scaled(at.params()["unscale"]));
    }));
    // A captured optimizer looks at the check on the GPU.
    if (IsGraphLaunch(graph, host)) {
      edit.AddEdge(before, checked, {}, Rule::kLaunch);
      continue;
    }
    Task call{.recorded_start = host.recorded_start,
              .duration = costs.op,
              .name = launch,
              .lane = host.lane,
              .scope = host.scope,
              .step = host.step,
              .kind = TaskKind::kCall,
              .phase = Phase::kOptimizer};
    edit.AddEdge(edit.InsertBefore(before, call), checked, {}, Rule::kLaunch);
    call.name = read;
    TaskId wait = edit.InsertBefore(before, call);
    edit.AddEdge(checked, wait, kReadBack, Rule::kHostWait, Anchor::kEnd, Anchor::kEnd);
  }
  return added;
}

}  // namespace daydream
