#include "report/questions/gpu_findings.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "costmodel/device_check.h"
#include "graph/call_kinds.h"
#include "report/text/format.h"
#include "transforms/analysis/memory_profile.h"

namespace daydream {
namespace {

// Chosen: a single name may hold such a word by chance.
constexpr size_t kNewerInAHundred = 100;

// What ran on one GPU.
struct Kernels {
  size_t all = 0, newer = 0;
  int newest = 0;
  std::string_view name;  // of one that was built for the newest architecture
};

class GpuFindings {
 public:
  explicit GpuFindings(const Graph& graph) : trace_(*graph.tables().trace), kinds_(graph) {
    ReadKernels();
    ReadCalls();
  }

  // GPUs of one kind are told once.
  std::vector<Finding> Run() {
    std::map<std::string, std::string> told, unknown;  // what to do about it
    for (const auto& [id, kernels] : by_device_) {
      const Device* device = trace_.FindDevice(id);
      if (device == nullptr || kernels.all == 0) continue;
      if (const std::string what = WhatContradicts(*device, kernels); !what.empty()) {
        told[what + ": what the file says of the GPU is not that of this recording"] =
            "use the file as it was recorded; with wrong properties nothing is known of what the "
            "GPU can do";
      } else if (const DeviceMatch match = MatchDevice(*device);
                 match.spec != nullptr && !match.named && !device->name.empty()) {
        unknown[fmt::format(
            "{} is no GPU that is known here: it is taken as {}, which has as many "
            "multiprocessors, and may differ in clock and memory",
            Printable(device->name), match.spec->name)] =
            "for another GPU name the recorded one: gpu(NEW, from=NAME), or from=FILE that says "
            "what it can do";
      }
    }
    std::vector<Finding> out;
    const auto tell = [&](const std::map<std::string, std::string>& all, double share) {
      for (const auto& [what, fix] : all) {
        out.push_back({.kind = FindingKind::kOtherGpu,
                       .about = About::kPredictions,
                       .text = what,
                       .where = {},
                       .time = {},
                       .share = share,
                       .fix = fix});
      }
    };
    tell(told, 1);
    tell(unknown, 0);  // what was measured stands
    return out;
  }

 private:
  void ReadKernels() {
    absl::flat_hash_map<NameId, int> architecture;
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] != EventKind::kKernel) continue;
      const int32_t id = trace_.lanes[trace_.lane[row].index()].device;
      Kernels& on = by_device_[id];
      ++on.all;
      const auto [it, fresh] = architecture.try_emplace(trace_.name[row], 0);
      if (fresh) it->second = ArchitectureOf(trace_.EventName(row));
      const Device* device = it->second == 0 ? nullptr : trace_.FindDevice(id);
      if (device == nullptr || device->compute_major == 0) continue;
      if (it->second <= device->compute_major) continue;
      ++on.newer;
      if (it->second <= on.newest) continue;
      on.newest = it->second;
      on.name = trace_.EventName(row);
    }
  }

  void ReadCalls() {
    for (size_t row = 0; row < trace_.rows(); ++row) {
      if (trace_.kind[row] != EventKind::kCall || trace_.correlation[row] == 0) continue;
      if (kinds_.Of(trace_.name[row]) != CallKind::kLaunch) continue;
      ++(trace_.EventName(row).starts_with("hip") ? hip_ : cuda_);
    }
  }

  std::string WhatContradicts(const Device& device, const Kernels& kernels) const {
    const std::string name = device.name.empty() ? "the GPU" : Printable(device.name);
    const int32_t said = device.multiprocessors, seen = device.launched_multiprocessors;
    if (said > 0 && seen > 0 && said != seen) {
      return fmt::format("{} has {} multiprocessors, and its kernels were launched on {}", name,
                         said, seen);
    }
    const DeviceMatch match = MatchDevice(device);
    const bool nvidia = match.spec != nullptr && match.spec->vendor == "NVIDIA";
    if (match.spec != nullptr && (nvidia ? hip_ > cuda_ : cuda_ > hip_)) {
      return fmt::format("{} is of {}, and its kernels were launched with {}", name,
                         match.spec->vendor, nvidia ? "HIP" : "CUDA");
    }
    if (nvidia && kernels.newer * kNewerInAHundred >= kernels.all && kernels.newer > 0) {
      return fmt::format(
          "{} has compute capability {}.{}, and {} of {} kernels were built for "
          "{}.0 or later, as {}",
          name, device.compute_major, device.compute_minor, FormatCount(kernels.newer),
          FormatCount(kernels.all), kernels.newest, Printable(kernels.name));
    }
    const std::string inside = ContradictionIn(device);
    return inside.empty() ? "" : fmt::format("{}: {}", name, inside);
  }

  const Trace& trace_;
  CallKinds kinds_;
  std::map<int32_t, Kernels> by_device_;
  size_t hip_ = 0, cuda_ = 0;
};

// Tensors of the program cannot take more than there is.
void FindTooMuchMemory(const Graph& graph, std::vector<Finding>& out) {
  if (graph.tables().trace->allocations.empty()) return;
  const MemoryProfile memory = ProfileMemory(graph);
  if (memory.source != MemoryProfile::Source::kAllocations || memory.capacity == 0) return;
  const auto capacity = static_cast<double>(memory.capacity);
  const double most = std::max(memory.peak, memory.reserved);
  if (most <= capacity) return;
  out.push_back(
      {.kind = FindingKind::kMemory,
       .about = About::kPredictions,
       .text = fmt::format("{} of memory are in use at most, and the GPU has {}: sizes of "
                           "allocations, or the properties of the GPU, are not of this recording",
                           FormatBytes(most), FormatBytes(capacity)),
       .where = {},
       .time = {},
       .share = 1 - capacity / most,
       .fix = "use the file as it was recorded; what is said of memory is wrong until then"});
}

}  // namespace

std::vector<Finding> FindingsOfGpus(const Graph& graph) {
  if (graph.tables().trace == nullptr) return {};
  std::vector<Finding> out = GpuFindings(graph).Run();
  FindTooMuchMemory(graph, out);
  return out;
}

}  // namespace daydream
