#include "costmodel/roofline.h"

#include <algorithm>
#include <map>

#include "transforms/op_work.h"
#include "transforms/precision.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

// The fastest format in which a kernel like this may have run: a bound must not assume a slower
// one than the recorded.
DType FastestFormat(const DeviceSpec& spec, const KernelTraits& traits, DType recorded) {
  if (traits.dtype != DType::kUnknown && traits.dtype != DType::kFp32) return traits.dtype;
  if (recorded != DType::kUnknown && recorded != DType::kFp32) return recorded;
  bool vector_units = traits.dtype == DType::kFp32 && !traits.tensor_cores;
  return !vector_units && spec.TensorPeak(DType::kTf32) > 0 ? DType::kTf32 : DType::kFp32;
}

absl::Status Run(const Params&, Editor& edit) {
  const Graph& graph = edit.graph();
  OpWorkTable works(graph);
  PrecisionRules rules(graph);
  works.SumTimes([](TaskId) { return true; });
  std::map<int32_t, DeviceMatch> devices;
  uint64_t known = 0, unknown = 0;
  Duration known_time, unknown_time;
  edit.BeginCause("kernels run at their roofline");
  for (TaskId t :
       edit.Select([](const Graph&g, TaskId id) { return g.task(id).kind == TaskKind::kKernel; })) {
    const Task& task = graph.task(t);
    auto [device, inserted] = devices.try_emplace(graph.lane(task.lane).lane.device);
    if (inserted) device->second = DeviceOf(graph, t);
    const DeviceSpec* spec = device->second.spec;
    OpWorkTable::Op op = works.Of(t);
    Duration total = op.work != nullptr ? works.TimeOf(op.scope) : Duration{};
    if (spec == nullptr || op.work == nullptr || !op.work->exact || total <= Duration{}) {
      ++unknown, unknown_time += task.duration;
      continue;
    }
    ++known, known_time += task.duration;
    DType format = FastestFormat(*spec, rules.Of(t).traits, op.work->dtype);
    DType stored = op.work->dtype == DType::kUnknown ? DType::kFp32 : op.work->dtype;
    Duration bound = RooflineBound(*spec, op.work->flops, op.work->Bytes(stored), format);
    // An op's bound is shared out to its kernels by their times.
    double share = std::min(1.0, static_cast<double>(bound.ns) / static_cast<double>(total.ns));
    edit.SetDuration(t, task.duration.Scaled(share));
  }
  edit.changes().notes.push_back(fmt::format(
      "{} kernels ({:.0f} % of kernel time) have a known roofline; {} others stay as they are",
      known, 100.0 * known_time.seconds() / std::max(1e-12, (known_time + unknown_time).seconds()),
      unknown));
  if (known == 0) {
    edit.changes().notes.push_back("shapes of ops (record_shapes=True) and a known GPU are needed");
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kRoofline = {
    .name = "roofline",
    .summary = "Every kernel runs as fast as the GPU's data sheet allows",
    .bound = true,
    .apply = &Run,
    .model =
        "Kernels of ops with recorded shapes take the larger of their arithmetic at the "
        "peak rate of their format and their bytes, each touched once, at the peak "
        "bandwidth of the recorded GPU. Kernels of other ops stay as they are, and are "
        "counted.",
    .ignores =
        "Fusion, which would need fewer bytes; other formats; forward convolutions, whose "
        "stride is not recorded.",
    .sources =
        "Williams, Waterman, Patterson: Roofline (CACM 2009); data sheets: "
        "docs/cost-model.md",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
