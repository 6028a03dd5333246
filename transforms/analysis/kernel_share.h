// What the kernels of a graph ask of their GPU, for questions about a share of it.
#pragma once

#include <optional>

#include "costmodel/sm_share.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/params.h"

namespace daydream {

inline constexpr ParamSpec kSaturationParam = {
    .name = "saturation",
    .unit = Unit::kShare,
    .fallback = 0.5,
    .low = 0.3,
    .high = 1,
    .min = 0.01,
    .max = 1,
    .help = "share of the multiprocessors whose loads saturate the memory",
    .source =
        "a guess, not measured: full occupancy with one 16-byte load a thread in flight "
        "and 700 ns of latency (Little's law) needs 0.3 of an A100, one with less more"};

// Valid while the graph lives. Durations may change meanwhile, tasks may be added.
class KernelDemands {
 public:
  explicit KernelDemands(const Graph& graph)
      : graph_(graph), works_(graph), classes_(graph), devices_(graph) {}

  struct Kernel {
    const DeviceSpec* device = nullptr;
    ShareDemand demand;
    bool by_shapes = false;  // arithmetic and bytes of its op are known; else taken from its class
    bool by_launch = false;  // grid and block were recorded; else its work divides evenly
  };
  // Nothing for kernels of GPUs that are not known. REQUIRES: `t` is a kernel. Amortised O(1).
  std::optional<Kernel> Of(TaskId t);

 private:
  const Graph& graph_;
  OpWorkTable works_;
  KernelClasses classes_;
  KnownDevices devices_;
};

}  // namespace daydream
