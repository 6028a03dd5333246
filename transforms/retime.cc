#include "transforms/retime.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "transforms/op_shapes.h"
#include "transforms/precision.h"

namespace daydream {
namespace {

// Shortest kernels of traces of V100, A100 and H100, and the launch cost that a plain sum of kernel
// times needs at most (docs/cost-model.md).
constexpr Duration kShortest = Duration::Ns(2000), kLongestFloor = Duration::Ns(10'000);
// A floor is not known better than this: so much of a short kernel is taken for work.
constexpr double kLeastWork = 0.1;
// CUDA C++ Programming Guide, technical specifications: blocks resident on a multiprocessor.
constexpr double kMostBlocks = 32;
// What the cache saves at most of the time of a memory-bound kernel (MemoryNs).
constexpr double kCacheSaves = 0.6;

bool Multiplies(KernelClass kind) {
  return kind == KernelClass::kGemm || kind == KernelClass::kConv ||
         kind == KernelClass::kAttention;
}

bool HasProducts(const OpWork* work) { return work != nullptr && !work->products.empty(); }

DType FormatOf(const KernelSetting& s) {
  if (s.format != DType::kUnknown) return s.format;
  return s.work != nullptr && s.work->dtype != DType::kUnknown ? s.work->dtype : DType::kFp32;
}

DType StoredFormat(const OpWork& work) {
  return work.dtype == DType::kUnknown ? DType::kFp32 : work.dtype;
}

double DramNs(const DeviceSpec& device, double bytes) {
  return bytes / (device.SustainedBandwidth() * 1e-9);
}

// Share of the time without a cache that a cache can save of this many bytes.
double CacheCanSave(const DeviceSpec& device, double bytes) {
  return std::clamp(1 - MemoryNs(device, bytes) / DramNs(device, bytes), 0.0, kCacheSaves);
}

// On the same GPU the measured time tells what the cache saved; growing bytes lose that.
double SameGpuBytesRatio(const DeviceSpec& device, double work_ns, double before, double after) {
  const double dram = DramNs(device, before);
  const double could = CacheCanSave(device, before);
  const double saved = std::clamp(1 - work_ns / dram, 0.0, could);
  const double then = could > 0 ? saved * CacheCanSave(device, after) / could : 0;
  return after / before * (1 - std::min(then, kCacheSaves)) / (1 - saved);
}

double Blocks(const KernelDetail& launch) {
  return static_cast<double>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
}

// Times of the work alone, without the floor.
struct Work {
  double ns;
  RetimedBy by;
};

Work ByModel(double work_ns, double before, double after, Deviation deviation, RetimedBy by) {
  if (deviation.own == 1 && deviation.typical == 1) return {work_ns * (after / before), by};
  return {after * std::pow(work_ns / before / deviation.typical, deviation.own), by};
}

std::optional<Work> ByShapes(double work_ns, KernelClass kind, const KernelSetting& before,
                             const KernelSetting& after, Deviation deviation) {
  if (before.device == nullptr || after.device == nullptr || before.work == nullptr ||
      after.work == nullptr) {
    return std::nullopt;
  }
  if (Multiplies(kind)) {
    if (!HasProducts(before.work) || !HasProducts(after.work)) return std::nullopt;
    const double old_ns = FormatNs(*before.device, *before.work, FormatOf(before));
    const double new_ns = FormatNs(*after.device, *after.work, FormatOf(after));
    if (!(old_ns > 0) || !(new_ns > 0)) return std::nullopt;
    return ByModel(work_ns, old_ns, new_ns, deviation, RetimedBy::kProducts);
  }
  const double old_bytes = before.work->Bytes(StoredFormat(*before.work));
  const double new_bytes = after.work->Bytes(StoredFormat(*after.work));
  if (!(old_bytes > 0) || !(new_bytes > 0)) return std::nullopt;
  const double old_ns = MemoryNs(*before.device, old_bytes);
  // Less than half of it is explained by the bytes: something else holds it up.
  if (2 * old_ns < work_ns) return std::nullopt;
  if (before.device == after.device) {
    return Work{work_ns * SameGpuBytesRatio(*before.device, work_ns, old_bytes, new_bytes),
                RetimedBy::kBytes};
  }
  return ByModel(work_ns, old_ns, MemoryNs(*after.device, new_bytes), deviation, RetimedBy::kBytes);
}

// How the work of a kernel grows whose model says nothing: with that of its op, if known.
double GrowthOf(const KernelSetting& before, const KernelSetting& after) {
  if (before.work == nullptr || after.work == nullptr) return after.growth / before.growth;
  const double old_elements = before.work->elements, new_elements = after.work->elements;
  return old_elements > 0 && new_elements > 0 ? new_elements / old_elements : 1;
}

double RateRatio(KernelClass kind, const KernelSetting& before, const KernelSetting& after) {
  if (before.device == nullptr || after.device == nullptr || before.device == after.device) {
    return 1;
  }
  const double memory = before.device->SustainedBandwidth() / after.device->SustainedBandwidth();
  if (!Multiplies(kind)) return memory;
  const double from = before.device->SustainedTflops(FormatOf(before));
  const double to = after.device->SustainedTflops(FormatOf(after));
  return from > 0 && to > 0 ? from / to : memory;
}

Work ByLaunch(double work_ns, KernelClass kind, const KernelDetail* launch,
              const KernelSetting& before, const KernelSetting& after) {
  const double growth = GrowthOf(before, after);
  const bool same_gpu = before.device == after.device;
  double at_once = 0, at_once_after = 0;
  if (launch != nullptr && before.device != nullptr && after.device != nullptr) {
    at_once = BlocksAtOnce(*before.device, *launch);
    at_once_after = BlocksAtOnce(*after.device, *launch);
  }
  if (at_once > 0 && at_once_after > 0) {
    const double waves = Blocks(*launch) / at_once;
    const double waves_after = Blocks(*launch) * growth / at_once_after;
    if (same_gpu) {
      return {work_ns * std::max(1.0, waves_after) / std::max(1.0, waves), RetimedBy::kWaves};
    }
    // Blocks of one wave run side by side: only the clock counts.
    if (waves <= 1 && waves_after <= 1) {
      return {work_ns * before.device->boost_clock_mhz / after.device->boost_clock_mhz,
              RetimedBy::kWaves};
    }
  }
  return {work_ns * growth * RateRatio(kind, before, after),
          same_gpu ? RetimedBy::kGrowth : RetimedBy::kRates};
}

bool SameSetting(const KernelSetting& a, const KernelSetting& b) {
  return a.device == b.device && a.work == b.work && FormatOf(a) == FormatOf(b) &&
         a.growth == b.growth && a.floor == b.floor;
}

// What the model says of this kernel's share in its op; 0 when it says nothing.
double ModelNs(KernelClass kind, const KernelSetting& s) {
  if (s.device == nullptr || s.work == nullptr) return 0;
  if (Multiplies(kind) != HasProducts(s.work)) return 0;
  if (Multiplies(kind)) return FormatNs(*s.device, *s.work, FormatOf(s));
  return MemoryNs(*s.device, s.work->Bytes(StoredFormat(*s.work)));
}

}  // namespace

double BlocksAtOnce(const DeviceSpec& device, const KernelDetail& launch) {
  const double threads = static_cast<double>(launch.block[0]) * launch.block[1] * launch.block[2];
  if (threads <= 0 || Blocks(launch) <= 0) return 0;
  double blocks = std::min(kMostBlocks, std::floor(device.threads_per_multiprocessor / threads));
  if (launch.registers_per_thread > 0 && device.registers_per_multiprocessor > 0) {
    blocks = std::min(blocks, std::floor(device.registers_per_multiprocessor /
                                         (threads * launch.registers_per_thread)));
  }
  if (launch.shared_memory_bytes > 0 && device.shared_memory_kb_per_multiprocessor > 0) {
    blocks = std::min(blocks, std::floor(device.shared_memory_kb_per_multiprocessor * 1024 /
                                         launch.shared_memory_bytes));
  }
  return std::max(blocks, 1.0) * device.multiprocessors;
}

Retimed Retime(Duration measured, KernelClass kind, const KernelDetail* launch,
               const KernelSetting& before, const KernelSetting& after, Deviation deviation) {
  if (SameSetting(before, after)) return {measured, RetimedBy::kGrowth};
  const auto total = static_cast<double>(measured.ns);
  const double moved = static_cast<double>((after.floor - before.floor).ns);
  const auto with_floor = [&](double ns) {
    return Duration::FromDouble(std::max(ns + moved, 0.0));
  };
  if (measured <= before.floor.Scaled(1 + kLeastWork)) {
    // It shows nothing of its own rate: what the model adds to it is added.
    const double old_ns = ModelNs(kind, before), new_ns = ModelNs(kind, after);
    if (old_ns > 0 && new_ns > 0) {
      return {with_floor(total + std::max(new_ns - old_ns, 0.0)), RetimedBy::kFloor};
    }
  }
  const double work_ns = std::max(total - static_cast<double>(before.floor.ns), kLeastWork * total);
  const std::optional<Work> shapes = ByShapes(work_ns, kind, before, after, deviation);
  const Work work = shapes ? *shapes : ByLaunch(work_ns, kind, launch, before, after);
  if (work.ns == work_ns && moved == 0) return {measured, work.by};
  return {with_floor(total - work_ns + work.ns), work.by};
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
  auto tenth = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 10);
  std::nth_element(times.begin(), tenth, times.end());
  return std::clamp(*tenth, Duration{}, kLongestFloor);
}

}  // namespace daydream
