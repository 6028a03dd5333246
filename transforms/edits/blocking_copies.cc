#include "transforms/edits/blocking_copies.h"

#include <string_view>

#include "base/text.h"
#include "graph/call_kind.h"

namespace daydream {
namespace {

// How many host tasks may lie between the call of a blocking copy and the synchronization that
// PyTorch adds to it.
constexpr int kSyncWithin = 4;

}  // namespace

void ReturnAtOnce(Editor& edit, TaskId call, const std::vector<bool>& waits, Duration cost) {
  const Graph& graph = edit.graph();
  if (graph.task(call).duration > cost) edit.SetDuration(call, cost);
  TaskId next = graph.task(call).lane_next;
  for (int i = 0; i < kSyncWithin && next.valid(); ++i, next = graph.task(next).lane_next) {
    const Task& task = graph.task(next);
    if (task.scope != graph.task(call).scope) break;
    const bool own_wait = task.kind == TaskKind::kWait && task.name == graph.task(call).name;
    const bool sync = task.kind == TaskKind::kCall && waits[next.index()] &&
                      Contains(graph.Name(task.name), "StreamSynchronize");
    if (own_wait || sync) edit.Remove({&next, 1});
  }
}

}  // namespace daydream
