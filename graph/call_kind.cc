#include "graph/call_kind.h"

#include "base/text.h"

#include <cctype>

namespace daydream {
namespace {

// The name without the vendor's prefix: "MemcpyAsync" for cudaMemcpyAsync and cuMemcpyAsync_v2.
std::string_view Stem(std::string_view name) {
  for (std::string_view prefix : {"cuda", "hipExt", "hip", "cu"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

}  // namespace

bool IsDriverCall(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && std::isupper(static_cast<int>(name[2]));
}

CallKind ClassifyCall(std::string_view name) {
  std::string_view stem = Stem(name);
  if (stem.empty()) return CallKind::kOther;
  if (stem.starts_with("GraphLaunch")) return CallKind::kGraphLaunch;
  if (Contains(stem, "LaunchHostFunc")) return CallKind::kOther;
  if (stem.starts_with("Launch") || Contains(stem, "ModuleLaunch")) return CallKind::kLaunch;
  if (stem.starts_with("Memcpy")) {
    return Contains(stem, "Async") ? CallKind::kCopyAsync : CallKind::kCopy;
  }
  if (stem.starts_with("Memset")) return CallKind::kMemset;
  if (stem == "DeviceSynchronize" || stem == "CtxSynchronize" || stem == "ThreadSynchronize") {
    return CallKind::kDeviceSync;
  }
  if (stem.starts_with("StreamSynchronize")) return CallKind::kStreamSync;
  if (stem.starts_with("EventSynchronize")) return CallKind::kEventSync;
  if (stem.starts_with("EventRecord")) return CallKind::kEventRecord;
  if (stem.starts_with("StreamWaitEvent")) return CallKind::kStreamWait;
  if (stem == "Free" || stem == "FreeHost" || stem == "HostFree" || stem == "MemFree_v2" ||
      stem == "MemFree") {
    return CallKind::kFree;
  }
  if (stem.starts_with("EventQuery") || stem.starts_with("StreamQuery")) return CallKind::kQuery;
  return CallKind::kOther;
}

TaskId OwnWait(const Graph& graph, TaskId call) {
  const TaskId next = graph.task(call).lane_next;
  const bool own = next.valid() && graph.task(next).kind == TaskKind::kWait &&
                   graph.task(next).name == graph.task(call).name;
  return own ? next : TaskId::None();
}

}  // namespace daydream
