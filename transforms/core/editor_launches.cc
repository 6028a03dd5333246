// Which call launched what: the index of an Editor.
#include <cstdint>

#include "transforms/core/editor.h"

namespace daydream {
namespace {

constexpr uint32_t kNoLaunch = 0xffffffff;  // as Editor has it

}  // namespace

Editor::Launches Editor::FindLaunchEdges(const Graph& graph) {
  Launches found;
  found.edge.assign(graph.size(), kNoLaunch);
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge& e = graph.edges()[i];
    if (e.rule != Rule::kLaunch) continue;
    // Work that began before its call returned has a second edge, from the start of the call.
    if (e.from_anchor == Anchor::kEnd) {
      found.edge[e.to.index()] = static_cast<uint32_t>(i);
    } else {
      found.started[e.to] = static_cast<uint32_t>(i);
    }
  }
  for (const auto& [task, edge] : found.started) {
    if (found.edge[task.index()] == kNoLaunch) found.edge[task.index()] = edge;
  }
  return found;
}

Editor::Launched Editor::FindLaunched(const Graph& graph, const Launches& launches) {
  Launched found;
  found.begin.assign(graph.size() + 1, 0);
  for (uint32_t edge : launches.edge) {
    if (edge != kNoLaunch) ++found.begin[graph.edges()[edge].from.index() + 1];
  }
  for (size_t i = 1; i < found.begin.size(); ++i) found.begin[i] += found.begin[i - 1];
  found.tasks.assign(found.begin.back(), TaskId::None());
  std::vector<uint32_t> next(found.begin.begin(), found.begin.end() - 1);
  for (size_t t = 0; t < launches.edge.size(); ++t) {
    if (launches.edge[t] == kNoLaunch) continue;
    found.tasks[next[graph.edges()[launches.edge[t]].from.index()]++] = TaskId(t);
  }
  return found;
}

}  // namespace daydream
