// What the kernels of a graph ask of their GPU, for questions about a share of it.
#pragma once

#include <optional>

#include "costmodel/sm_share.h"
#include "transforms/op_shapes.h"
#include "transforms/op_work.h"
#include "transforms/precision.h"

namespace daydream {

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
