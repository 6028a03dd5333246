#include "tests/accuracy/compose.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

namespace daydream {
namespace {

constexpr int64_t kLaunchLatencyNs = 5000;
constexpr int64_t kProcess = 1;

std::string TextOf(const std::vector<Dims>& inputs) {
  std::vector<std::string> tensors;
  tensors.reserve(inputs.size());
  for (const Dims& dims : inputs) tensors.push_back(fmt::format("[{}]", fmt::join(dims, ", ")));
  return fmt::format("[{}]", fmt::join(tensors, ", "));
}

std::string TypesOf(const std::vector<Dims>& inputs) {
  std::vector<std::string> types;
  types.reserve(inputs.size());
  for (const Dims& dims : inputs) types.push_back(dims.empty() ? "\"Scalar\"" : "\"float\"");
  return fmt::format("[{}]", fmt::join(types, ", "));
}

}  // namespace

StepComposer::StepComposer(const DeviceSpec& gpu, HostTimes host)
    : host_(host),
      thread_(builder_.AddLane(LaneKind::kThread, kProcess, kProcess, -1)),
      stream_(builder_.AddLane(LaneKind::kStream, 0, 7, 0)) {
  builder_.AddDevice({.id = 0,
                      .name = gpu.name,
                      .memory_bytes = static_cast<uint64_t>(gpu.memory_gb * (1 << 30)),
                      .compute_major = gpu.compute_major,
                      .compute_minor = gpu.compute_minor,
                      .multiprocessors = gpu.multiprocessors});
}

void StepComposer::AddEvent(LaneId lane, EventKind kind, std::string_view name, int64_t start,
                            int64_t length, uint32_t detail) {
  builder_.AddEvent(
      {.start = Instant::AtNs(start),
       .duration = Duration::Ns(length),
       .lane = lane,
       .name = builder_.names().Intern(name),
       .kind = kind,
       .correlation = kind == EventKind::kCall || kind == EventKind::kKernel ? correlation_ : 0,
       .detail = detail});
}

void StepComposer::Add(const std::vector<Op>& ops, std::string_view kernel, double us) {
  ++correlation_;
  int64_t begin = host_ns_, length = host_.op.ns;
  for (const Op& op : ops) {
    OpDetail detail;
    if (!op.inputs.empty()) {
      detail.shapes = builder_.names().Intern(TextOf(op.inputs));
      detail.types = builder_.names().Intern(TypesOf(op.inputs));
    }
    AddEvent(thread_, EventKind::kOp, op.name, begin, length, builder_.AddOp(detail));
    begin += 100, length -= 200;
  }
  begin += length - host_.launch.ns;  // the last that each op does
  AddEvent(thread_, EventKind::kCall, "cudaLaunchKernel", begin, host_.launch.ns,
           Id<void>::kNoneValue);
  gpu_ns_ = std::max(gpu_ns_, begin + kLaunchLatencyNs);
  const auto kernel_ns = static_cast<int64_t>(std::llround(us * 1e3));
  AddEvent(stream_, EventKind::kKernel, kernel, gpu_ns_, kernel_ns, Id<void>::kNoneValue);
  gpu_ns_ += kernel_ns;
  host_ns_ += host_.op.ns;
}

void StepComposer::AddGradient(const Dims& shape, std::string_view type) {
  OpDetail detail;
  detail.shapes = builder_.names().Intern(TextOf({shape}));
  detail.types = builder_.names().Intern(fmt::format("[\"{}\"]", type));
  AddEvent(thread_, EventKind::kOp, "torch::autograd::AccumulateGrad", host_ns_, host_.op.ns,
           builder_.AddOp(detail));
  host_ns_ += host_.op.ns;
}

absl::StatusOr<std::shared_ptr<const Trace>> StepComposer::Build() {
  // The host runs ahead and is through long before the GPU.
  AddEvent(thread_, EventKind::kAnnotation, "ProfilerStep#1", 0, host_ns_, Id<void>::kNoneValue);
  return builder_.Build();
}

}  // namespace daydream
