#include "transforms/edits/retime.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/median.h"
#include "costmodel/occupancy.h"
#include "costmodel/op_time.h"
#include "costmodel/roofline.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/precision.h"

namespace daydream {
namespace {

// Shortest kernels of traces of V100, A100 and H100, and the launch cost that a plain sum of kernel
// times needs at most (docs/cost-model.md).
constexpr Duration kShortest = Duration::Ns(2000), kLongestFloor = Duration::Ns(10'000);
// Times of old traces are whole microseconds, and some of their kernels took 0.
constexpr Duration kLeastFloor = Duration::Ns(1000);
// A floor is not known better than this: so much of a short kernel is taken for work.
constexpr double kLeastWork = 0.1;

bool HasProducts(const OpWork* work) { return work != nullptr && !work->products.empty(); }

// The format in which the kernel multiplies.
DType FormatOf(const RecordedKernel& kernel, const OpWork& work) {
  return kernel.traits.dtype != DType::kUnknown ? kernel.traits.dtype : work.dtype;
}

double BytesOf(const OpWork& work) {
  return work.Bytes(work.dtype == DType::kUnknown ? DType::kFp32 : work.dtype);
}

// Share of its time without a cache that the cache can save of a memory-bound kernel.
double CacheCanSave(const DeviceSpec& device, double bytes) {
  const double dram_ns = bytes / (device.SustainedBandwidth() * 1e-9);
  return dram_ns > 0 ? std::max(1 - MemoryNs(device, bytes) / dram_ns, 0.0) : 0;
}

// The measured time tells what the cache saved; bytes that outgrow the cache lose that.
double BytesRatio(const DeviceSpec& device, double work_ns, double before, double after) {
  const double could = CacheCanSave(device, before);
  const double dram_ns = before / (device.SustainedBandwidth() * 1e-9);
  const double saved = std::clamp(1 - work_ns / dram_ns, 0.0, could);
  const double kept = could > 0 ? saved * std::min(CacheCanSave(device, after) / could, 1.0) : 0;
  return after / before * (1 - kept) / (1 - saved);
}

double Blocks(const KernelDetail& launch) {
  return static_cast<double>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
}

struct Ratio {
  double value;
  RetimedBy by;
};

// What the model says of the op's work in this kernel's class; 0 when it says nothing.
double ModelNs(const RecordedKernel& kernel, const OpWork* work) {
  const bool products = Multiplies(kernel.traits.kind);
  if (kernel.device == nullptr || work == nullptr || products != HasProducts(work)) return 0;
  return products ? PredictOp(*kernel.device, *work, FormatOf(kernel, *work)).ns
                  : MemoryNs(*kernel.device, BytesOf(*work));
}

std::optional<Ratio> ByShapes(const RecordedKernel& kernel, double work_ns,
                              const WorkChange& change) {
  const double before = ModelNs(kernel, change.before), after = ModelNs(kernel, change.after);
  if (!(before > 0) || !(after > 0)) return std::nullopt;
  if (Multiplies(kernel.traits.kind)) return Ratio{after / before, RetimedBy::kProducts};
  // Less than half of it is explained by the bytes: something else holds it up.
  if (2 * before < work_ns) return std::nullopt;
  return Ratio{BytesRatio(*kernel.device, work_ns, BytesOf(*change.before), BytesOf(*change.after)),
               RetimedBy::kBytes};
}

// REQUIRES: both are known.
double GrowthOf(const WorkChange& change) {
  const double before = change.before->elements, after = change.after->elements;
  return before > 0 && after > 0 ? after / before : change.growth;
}

// Blocks that fit on the GPU run side by side: they take as long as one.
Ratio ByLaunch(const RecordedKernel& kernel, double growth) {
  if (kernel.launch == nullptr || kernel.device == nullptr) return {growth, RetimedBy::kGrowth};
  const double blocks = Blocks(*kernel.launch);
  const LaunchShape shape = LaunchShapeOf(*kernel.launch);
  if (!(blocks > 0) || shape.threads_per_block <= 0) return {growth, RetimedBy::kGrowth};
  const double at_once = WaveSize(*kernel.device, shape);
  return {std::max(1.0, blocks * growth / at_once) / std::max(1.0, blocks / at_once),
          RetimedBy::kWaves};
}

Ratio WithoutShapes(const RecordedKernel& kernel, const WorkChange& change) {
  if (!Multiplies(kernel.traits.kind)) return {change.growth, RetimedBy::kGrowth};
  Ratio ratio = ByLaunch(kernel, change.growth);
  if (change.growth >= 1 || ratio.by != RetimedBy::kWaves) return ratio;
  ratio.value = std::pow(change.growth, change.fill) * std::pow(ratio.value, 1 - change.fill);
  return ratio;
}

}  // namespace

Retimed Retime(const RecordedKernel& kernel, const WorkChange& change, Duration floor) {
  const auto total = static_cast<double>(kernel.time.ns);
  if (kernel.time <= floor.Scaled(1 + kLeastWork)) {
    // It shows nothing of its own rate.
    const double before = ModelNs(kernel, change.before), after = ModelNs(kernel, change.after);
    if (before > 0 && after > 0) {
      return {Duration::FromDouble(total + std::max(after - before, 0.0)), RetimedBy::kFloor};
    }
  }
  const double work_ns = std::max(total - static_cast<double>(floor.ns), kLeastWork * total);
  const std::optional<Ratio> shapes = ByShapes(kernel, work_ns, change);
  const bool known = change.before != nullptr && change.after != nullptr;
  const Ratio ratio = shapes  ? *shapes
                      : known ? ByLaunch(kernel, GrowthOf(change))
                              : WithoutShapes(kernel, change);
  return {Duration::FromDouble(total + work_ns * (ratio.value - 1)), ratio.by};
}

Duration KernelFloor(const Graph& graph) {
  KernelClasses classes(graph);
  KnownDevices devices(graph);
  std::vector<Duration> times;
  for (size_t i = 0; i < graph.size(); ++i) {
    const TaskId t(i);
    const Task& task = graph.task(t);
    const KernelDetail* launch = task.kind == TaskKind::kKernel ? graph.Kernel(t) : nullptr;
    if (launch == nullptr || task.removed || Multiplies(classes.Of(t))) continue;
    const DeviceSpec* device = devices.Of(t);
    if (device == nullptr || Blocks(*launch) <= 0) continue;
    if (Blocks(*launch) < device->multiprocessors) times.push_back(task.duration);
  }
  if (times.empty()) return kShortest;
  return std::clamp(Ranked(times, times.size() / 10), kLeastFloor, kLongestFloor);
}

}  // namespace daydream
