#include "graph/device_waits.h"

#include <algorithm>
#include <array>
#include <optional>

#include "graph/call_kind.h"

namespace daydream {
namespace {

// Waits of one thread and kind tell a stream's work once: calls that free do so with other lags.
enum class DeviceWait : uint8_t { kSync, kFree };
constexpr size_t kDeviceWaits = 2;

std::optional<DeviceWait> DeviceWaitOf(const Graph& graph, TaskId t) {
  switch (ClassifyCall(graph.TaskName(t))) {
    case CallKind::kDeviceSync:
      return DeviceWait::kSync;
    case CallKind::kFree:
      return DeviceWait::kFree;
    default:
      return std::nullopt;
  }
}

// The edges of rule kHostWait by the task that waits, in the order of the graph.
class WaitEdges {
 public:
  explicit WaitEdges(const Graph& graph) : begin_(graph.size() + 1, 0) {
    for (const Edge& e : graph.edges()) {
      if (e.rule == Rule::kHostWait) ++begin_[e.to.index() + 1];
    }
    for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    edges_.resize(begin_.back());
    std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (const Edge& e : graph.edges()) {
      if (e.rule == Rule::kHostWait) edges_[next[e.to.index()]++] = e;
    }
  }

  std::span<const Edge> Of(TaskId t) const {
    return std::span(edges_).subspan(begin_[t.index()], begin_[t.index() + 1] - begin_[t.index()]);
  }

 private:
  std::vector<uint32_t> begin_;  // by task: its first edge
  std::vector<Edge> edges_;
};

template <typename Visit>
void ForEachWait(const Graph& graph, const WaitEdges& edges, const Visit& visit) {
  const size_t lanes = graph.lanes().size();
  for (size_t lane = 0; lane < lanes; ++lane) {
    bool first = true;
    for (TaskId t = graph.lanes()[lane].first; t.valid(); t = graph.task(t).lane_next) {
      if (edges.Of(t).empty()) continue;
      visit(t, edges.Of(t), first);
      first = false;
    }
  }
}

}  // namespace

void VisitWaits(const Graph& graph,
                const std::function<void(TaskId wait, AwaitedWork& awaited)>& visit) {
  std::array<AwaitedWork, kDeviceWaits> told;
  const WaitEdges edges(graph);
  ForEachWait(graph, edges, [&](TaskId t, std::span<const Edge> own, bool first_of_lane) {
    if (first_of_lane) told = {};
    const std::optional<DeviceWait> kind = DeviceWaitOf(graph, t);
    AwaitedWork alone;
    AwaitedWork& awaited = kind ? told[static_cast<size_t>(*kind)] : alone;
    for (const Edge& e : own) {
      const LaneId lane = graph.task(e.from).lane;
      awaited.last[lane] = e.from;
      awaited.news.push_back(lane);
    }
    visit(t, awaited);
  });
}

std::vector<PassedEdge> EdgesPassedOn(const Graph& graph, const std::function<bool(TaskId)>& gone) {
  std::vector<PassedEdge> passed;
  if (std::ranges::none_of(graph.edges(), [&](const Edge& e) {
        return e.rule == Rule::kHostWait && gone(e.to) && DeviceWaitOf(graph, e.to);
      })) {
    return passed;
  }
  std::array<std::map<LaneId, Edge>, kDeviceWaits> open;  // of waits that go, by stream
  const WaitEdges edges(graph);
  ForEachWait(graph, edges, [&](TaskId t, std::span<const Edge> own, bool first_of_lane) {
    if (first_of_lane) open = {};
    const std::optional<DeviceWait> kind = DeviceWaitOf(graph, t);
    if (!kind) return;
    std::map<LaneId, Edge>& waiting = open[static_cast<size_t>(*kind)];
    if (gone(t)) {
      for (const Edge& e : own) waiting[graph.task(e.from).lane] = e;
      return;
    }
    for (const Edge& e : own) waiting.erase(graph.task(e.from).lane);
    for (const auto& [lane, e] : waiting) {
      passed.push_back({.edge = e, .by = e.to});
      passed.back().edge.to = t;
    }
    waiting.clear();
  });
  return passed;
}

}  // namespace daydream
