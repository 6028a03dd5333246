#include "trace/nsys/collectives.h"

#include <utility>

#include <fmt/format.h>

#include "absl/strings/ascii.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

constexpr uint32_t kNoCall = Id<void>::kNoneValue;

// "allreduce" of "ncclAllReduce", as the PyTorch profiler has it.
std::string CollectiveName(std::string_view range) {
  if (range.starts_with("nccl")) range.remove_prefix(4);
  return absl::AsciiStrToLower(std::string(range));
}

}  // namespace

uint32_t NsysCollectives::Add(uint32_t process, std::string_view name, const NsysPayload& payload) {
  if (payload.communicator != 0 && payload.ranks > 0) {
    group_sizes_[{process, payload.communicator}] = payload.ranks;
  }
  calls_.push_back({process, name == "ncclGroupEnd", CollectiveName(name), payload});
  return static_cast<uint32_t>(calls_.size() - 1);
}

uint32_t NsysCollectives::RowOf(Trace& trace, const Call& call) {
  const NsysPayload& payload = call.payload;
  CollectiveDetail detail{.name = trace.names->Intern(call.name),
                          .dtype = trace.names->Intern("Byte"),
                          .elements_in = payload.bytes,
                          .elements_out = payload.bytes};
  if (payload.communicator != 0) {
    detail.process_group = trace.names->Intern(fmt::format("{:016x}", payload.communicator));
    const auto size = group_sizes_.find({call.process, payload.communicator});
    if (size != group_sizes_.end()) detail.group_size = static_cast<int32_t>(size->second);
  }
  const auto next = static_cast<uint32_t>(trace.collectives.size());
  const auto key =
      std::tuple(detail.name, detail.process_group, detail.elements_in, detail.group_size);
  const auto [row, fresh] = rows_.try_emplace(key, next);
  if (fresh) trace.collectives.push_back(detail);
  return row->second;
}

void NsysCollectives::FinishLane(Trace& trace, size_t lane) {
  struct Open {
    Instant end;
    const Call* call = nullptr;
  };
  std::vector<Open> open;
  std::vector<const Call*> in_group;  // called since the last end of a group
  for (size_t row = trace.lane_begin[lane]; row < trace.lane_begin[lane + 1]; ++row) {
    while (!open.empty() && open.back().end <= trace.start[row]) {
      if (open.back().call->ends_group) in_group.clear();
      open.pop_back();
    }
    if (trace.kind[row] == EventKind::kAnnotation && trace.detail[row] < calls_.size()) {
      const Call& call = calls_[std::exchange(trace.detail[row], kNoCall)];
      open.push_back({trace.End(row), &call});
      if (call.payload.bytes >= 0) in_group.push_back(&call);
    }
    if (trace.kind[row] != EventKind::kCall || trace.correlation[row] == 0 || open.empty())
      continue;
    const Call* call = open.back().call;
    if (call->ends_group) call = in_group.size() == 1 ? in_group.front() : nullptr;
    if (call == nullptr || call->payload.bytes < 0) continue;
    of_launch_.try_emplace(trace.correlation[row], RowOf(trace, *call));
    if (!in_group.empty() && in_group.back() == call) in_group.pop_back();  // it is launched
  }
}

void NsysCollectives::Finish(Trace& trace) {
  if (calls_.empty()) return;
  for (size_t lane = 0; lane < trace.lanes.size(); ++lane) {
    if (trace.lanes[lane].kind == LaneKind::kThread) FinishLane(trace, lane);
  }
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> details;  // (kernel, collective) -> kernel
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kKernel || !IsCollectiveKernel(trace.EventName(row)))
      continue;
    const auto launch = of_launch_.find(trace.correlation[row]);
    const uint32_t old = trace.detail[row];
    if (launch == of_launch_.end() || old >= trace.kernels.size()) continue;
    const auto next = static_cast<uint32_t>(trace.kernels.size());
    const auto [detail, fresh] = details.try_emplace({old, launch->second}, next);
    if (fresh) {
      KernelDetail kernel = trace.kernels[old];
      kernel.collective = launch->second;
      trace.kernels.push_back(kernel);
    }
    trace.detail[row] = detail->second;
  }
}

}  // namespace daydream
