// Recordings of one step put together from operators that were measured one by one: a thread that
// launches each kernel ahead of time, and a stream on which they run back to back. Shapes are
// recorded, layers are not.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/device.h"
#include "costmodel/op_shape.h"
#include "trace/trace_builder.h"

namespace daydream {

class StepComposer {
 public:
  // What the host takes for an op, and of that for the launch in it. By default so short that the
  // GPU never waits.
  struct HostTimes {
    Duration op = Duration::Us(3), launch = Duration::Us(1);
  };
  explicit StepComposer(const DeviceSpec& gpu) : StepComposer(gpu, HostTimes()) {}
  StepComposer(const DeviceSpec& gpu, HostTimes host);

  struct Op {
    std::string name;          // "aten::addmm"
    std::vector<Dims> inputs;  // empty: no shapes recorded
  };
  // One kernel inside of `ops`, outermost first.
  void Add(const std::vector<Op>& ops, std::string_view kernel, double us);

  // Backward hands a parameter of this shape its gradient: an op without a kernel.
  void AddGradient(const Dims& shape, std::string_view type);

  // All of it is marked as one step.
  absl::StatusOr<std::shared_ptr<const Trace>> Build();

 private:
  void AddEvent(LaneId lane, EventKind kind, std::string_view name, int64_t start, int64_t length,
                uint32_t detail);

  TraceBuilder builder_;
  HostTimes host_;
  LaneId thread_, stream_;
  int64_t host_ns_ = 0, gpu_ns_ = 0;
  uint32_t correlation_ = 0;
};

}  // namespace daydream
