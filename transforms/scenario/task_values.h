// The fields of tasks and the facts about the GPU that expressions of option files name.
//
//   time        own work, without waiting
//   gap         how long the lane stays busy after it
//   bytes       copies: bytes copied; collectives: bytes of the larger side; kernels: bytes that
//               their op reads and writes, each once, shared out to its kernels by their times
//   in_bytes    the part of `bytes` that is read; out_bytes: the part that is written
//   flops       operations of the op, shared out in the same way; 0 for ops that only move data
//   grid, block number of thread blocks, and of threads in a block
//   regs        registers per thread
//   launches    calls that launch the task: 1, or 0 when none was recorded
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transforms/analysis/op_work.h"
#include "transforms/core/expression.h"
#include "transforms/core/params.h"

namespace daydream {

class TaskValues : public ExpressionValues {
 public:
  // Times are read when asked for; everything else may be remembered, so that an object serves one
  // step of an option file. `specs` are those that `params` were bound to.
  TaskValues(const Graph& graph, const Params& params, std::span<const ParamSpec> specs);

  double Param(std::string_view name) const override;
  std::optional<double> Value(TaskId t, Field f) override;
  std::optional<double> Value(TaskId t, GpuFact f, DType dtype) override;

 private:
  struct Work {
    double bytes = 0, in_bytes = 0, flops = 0;
    bool has_type = false;  // the size of an element is known
  };
  std::optional<double> KernelValue(TaskId t, Field f);
  std::optional<double> LaunchValue(TaskId t, Field f) const;
  std::optional<double> BytesOf(TaskId t, Field f);
  // Work of the op around a kernel, the kernel's share of it.
  std::optional<Work> WorkOf(TaskId t);
  double Launches(TaskId t);

  const Graph& graph_;
  const Params& params_;
  std::span<const ParamSpec> specs_;
  OpWorkTable works_;
  bool summed_ = false;
  absl::flat_hash_map<ScopeId, double> read_;  // bytes of an op's inputs
  std::map<int32_t, const DeviceSpec*> devices_;
  std::vector<bool> launched_;  // by task
};

}  // namespace daydream
