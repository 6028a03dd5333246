// Rule E4: the legacy default stream. What is launched on it waits for what was launched before on
// every blocking stream of the device, and what is launched on a blocking stream waits for what
// was launched before on it (CUDA Programming Guide, "Default Stream"). Only recordings say which
// streams are blocking; PyTorch's own are not.
#include <map>
#include <utility>
#include <vector>

#include "base/sort_runs.h"
#include "graph/builder.h"

namespace daydream {
namespace {

// Launched last on each stream of a device, as far as nothing has waited for it yet.
struct DeviceState {
  uint32_t last_default = Builder::kNone;
  std::map<LaneId, uint32_t> blocking;  // since the last launch on the default stream
};

}  // namespace

void AddDefaultStreamWaits(Builder& b) {
  const auto type_of = [&](const GpuOp& op) { return b.trace.lanes[op.lane.index()].stream; };
  std::vector<uint32_t> launches;
  for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
    const StreamType type = b.trace.lanes[lane].stream;
    if (type != StreamType::kBlocking && type != StreamType::kDefault) continue;
    for (const uint32_t op : b.stream_ops[lane]) {
      if (b.ops[op].call.valid()) launches.push_back(op);
    }
  }
  SortRuns(launches, [&](uint32_t x, uint32_t y) {
    return std::pair(b.ops[x].call_start, x) < std::pair(b.ops[y].call_start, y);
  });
  const auto add = [&](uint32_t from, uint32_t to) {
    // A program that is compiled for a default stream of each thread shows by its timing.
    if (from >= to || b.ops[from].end > b.ops[to].start + kGranularity) return;
    b.event_waits.emplace_back(to, from);
  };
  std::map<int32_t, DeviceState> devices;
  for (const uint32_t op : launches) {
    DeviceState& state = devices[b.trace.lanes[b.ops[op].lane.index()].device];
    if (type_of(b.ops[op]) == StreamType::kDefault) {
      for (const auto& [lane, last] : state.blocking) add(last, op);
      state.blocking.clear();
      state.last_default = op;
      continue;
    }
    const auto [it, first] = state.blocking.insert_or_assign(b.ops[op].lane, op);
    if (first && state.last_default != Builder::kNone) add(state.last_default, op);
  }
}

}  // namespace daydream
