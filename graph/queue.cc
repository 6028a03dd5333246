#include "graph/queue.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/queue_places.h"

namespace daydream {
namespace {

bool IsDeviceMemory(Memory m) { return m == Memory::kDevice || m == Memory::kArray; }

// By TaskId of a call: its place among the calls of all threads; 0 of other tasks. Work of a step
// that was repeated was recorded once, so that the step comes before the time, and inserted work
// was never recorded.
std::vector<uint32_t> OrderOfCalls(const Graph& graph) {
  struct Call {
    uint16_t step;
    Instant start;
    uint32_t place;  // on its thread
    TaskId task;
  };
  std::vector<Call> calls;
  for (const GraphLane& thread : graph.lanes()) {
    if (thread.lane.kind != LaneKind::kThread) continue;
    std::pair<uint16_t, Instant> latest{0, Instant::Min()};
    uint32_t place = 0;
    for (TaskId t = thread.first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      latest = std::max(latest, {task.step, task.recorded_start});
      if (task.kind != TaskKind::kCall) continue;
      calls.push_back({latest.first, latest.second, place++, t});
    }
  }
  std::sort(calls.begin(), calls.end(), [](const Call& x, const Call& y) {
    return std::tie(x.step, x.start, x.place, x.task) < std::tie(y.step, y.start, y.place, y.task);
  });
  std::vector<uint32_t> order(graph.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    order[calls[i].task.index()] = static_cast<uint32_t>(i + 1);
  }
  return order;
}

// An operation, or a launch whose operation was not recorded.
struct Place {
  TaskId operation, call;
  uint32_t order = 0;  // of its call
};

// Puts what streams submitted into the order of its calls. Streams stay in order; what has no call
// was submitted with what came before it.
void Merge(std::vector<Place>& places, std::span<const size_t> begins_of_streams) {
  size_t next = 0;
  uint32_t latest = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (next < begins_of_streams.size() && begins_of_streams[next] == i) latest = 0, ++next;
    latest = places[i].order = std::max(latest, places[i].order);
  }
  std::ranges::stable_sort(places, {}, &Place::order);
}

// What `streams` submitted to their queue; in the order of its calls, if that is given.
std::vector<Place> PlacesOf(const Graph& graph, std::span<const LaneId> streams,
                            std::span<const std::vector<TaskId>> unrecorded,
                            std::span<const TaskId> call_of, std::span<const uint32_t> order) {
  std::vector<Place> places;
  std::vector<size_t> begins;
  for (LaneId stream : streams) {
    begins.push_back(places.size());
    for (TaskId t = graph.lane(stream).first; t.valid(); t = graph.task(t).lane_next) {
      if (!graph.task(t).removed && TakesPlace(graph, t)) places.push_back({t, call_of[t.index()]});
    }
    for (TaskId call : unrecorded[stream.index()]) places.push_back({TaskId::None(), call});
  }
  if (order.empty()) return places;
  for (Place& p : places) p.order = p.call.valid() ? order[p.call.index()] : 0;
  Merge(places, begins);
  return places;
}

// By LaneId: calls of threads, in their order.
std::vector<std::vector<SubmittingCall>> CallsOfThreads(const Graph& graph,
                                                        std::span<const Outcome> outcome_of) {
  std::vector<std::vector<SubmittingCall>> calls(graph.lanes().size());
  for (size_t i = 0; i < calls.size(); ++i) {
    const GraphLane& lane = graph.lanes()[i];
    if (lane.lane.kind != LaneKind::kThread) continue;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      if (task.kind != TaskKind::kCall || task.removed) continue;
      calls[i].push_back({t, task.name, task.recorded_start, outcome_of[t.index()]});
    }
  }
  return calls;
}

// Those of `lanes` that have a queue, and all that share one with them.
std::vector<LaneId> StreamsToRebuild(const Graph& graph, const std::vector<bool>& lanes) {
  std::vector<LaneId> rebuilt;
  std::vector<bool> is_rebuilt(graph.lanes().size());
  for (size_t i = 0; i < std::min(lanes.size(), graph.lanes().size()); ++i) {
    if (!lanes[i] || graph.lane(LaneId(i)).queue_depth < 2) continue;
    for (LaneId lane : StreamsOfQueue(graph, LaneId(i))) is_rebuilt[lane.index()] = true;
  }
  for (size_t i = 0; i < is_rebuilt.size(); ++i) {
    if (is_rebuilt[i]) rebuilt.push_back(LaneId(i));
  }
  return rebuilt;
}

}  // namespace

bool TakesPlace(const Graph& graph, TaskId gpu_task) {
  if (graph.task(gpu_task).kind != TaskKind::kMemcpy) return IsGpu(graph.task(gpu_task).kind);
  const CopyDetail* copy = graph.Copy(gpu_task);
  return copy != nullptr && IsDeviceMemory(copy->from) && IsDeviceMemory(copy->to);
}

void RebuildQueueEdges(Graph& graph, const std::vector<bool>& lanes) {
  const std::vector<LaneId> rebuilt = StreamsToRebuild(graph, lanes);
  if (rebuilt.empty()) return;
  std::vector<bool> is_rebuilt(graph.lanes().size());
  for (LaneId lane : rebuilt) is_rebuilt[lane.index()] = true;
  const auto is_queue = [&](const Edge& e) {
    return e.rule == Rule::kQueue && is_rebuilt[graph.task(e.from).lane.index()];
  };
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Duration> known;
  std::vector<Edge>& edges = graph.mutable_edges();
  known.reserve(static_cast<size_t>(std::ranges::count_if(edges, is_queue)));
  std::vector<TaskId> call_of(graph.size());
  std::vector<Outcome> outcomes(graph.size());
  for (const Edge& e : edges) {
    if (e.rule == Rule::kLaunch && e.from_anchor == Anchor::kEnd) {
      call_of[e.to.index()] = e.from;
      outcomes[e.from.index()] = {graph.task(e.to).lane, TakesPlace(graph, e.to)};
    } else if (is_queue(e)) {
      // A lag from the end of an operation says nothing about what follows its start.
      if (e.from_anchor == Anchor::kStart) known[{e.from.value, e.to.value}] = e.lag;
    }
  }
  // Records of events that waited for room, and the stream they wait on.
  std::vector<std::pair<TaskId, LaneId>> records;
  for (const Edge& e : edges) {
    if (!is_queue(e) || outcomes[e.to.index()].stream.valid()) continue;
    if (RecordsEvent(graph, e.to)) records.emplace_back(e.to, graph.task(e.from).lane);
  }
  std::erase_if(edges, is_queue);
  const std::vector<std::vector<TaskId>> unrecorded =
      AnyUnrecorded(graph, outcomes) ? UnrecordedLaunches(graph, CallsOfThreads(graph, outcomes))
                                     : std::vector<std::vector<TaskId>>(graph.lanes().size());
  const bool shared =
      std::ranges::any_of(rebuilt, [&](LaneId lane) { return graph.lane(lane).shared_queue != 0; });
  const std::vector<uint32_t> order =
      shared || !records.empty() ? OrderOfCalls(graph) : std::vector<uint32_t>();
  const auto wait_for = [&](TaskId call, TaskId release) {
    if (!release.valid() || call_of[release.index()] == call) return;
    const auto it = known.find({release.value, call.value});
    graph.AddEdge({.from = release,
                   .to = call,
                   .lag = it == known.end() ? kQueueReleaseLag : it->second,
                   .rule = Rule::kQueue,
                   .from_anchor = Anchor::kStart,
                   .to_anchor = Anchor::kEnd});
  };
  for (LaneId lane : rebuilt) {
    const std::vector<LaneId> streams = StreamsOfQueue(graph, lane);
    if (streams.front() != lane) continue;  // done with that one
    const std::vector<Place> places = PlacesOf(graph, streams, unrecorded, call_of, order);
    const uint32_t depth = graph.lane(lane).queue_depth;
    TaskId last_call;
    for (size_t i = 0; i < places.size(); ++i) {
      const TaskId call = places[i].call;
      if (!call.valid() || call == last_call) continue;
      last_call = call;
      if (i + 1 >= depth) wait_for(call, places[i + 1 - depth].operation);
    }
    for (const auto& [call, stream] : records) {  // as the next launch would
      if (graph.task(call).removed || std::ranges::find(streams, stream) == streams.end()) continue;
      const auto next = std::ranges::upper_bound(places, order[call.index()], {}, &Place::order);
      const auto i = static_cast<size_t>(next - places.begin());
      if (i + 1 >= depth) wait_for(call, places[i + 1 - depth].operation);
    }
  }
}

}  // namespace daydream
