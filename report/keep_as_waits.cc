#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "report/stalls.h"

namespace daydream {
namespace {

// What streams did while a thread was held up.
class IdleStreams {
 public:
  IdleStreams(const Graph& graph, const Timeline& timeline) : graph_(graph), timeline_(timeline) {
    std::vector<TaskId> call_of(graph.size());
    for (const Edge& e : graph.edges()) {
      if (e.rule == Rule::kLaunch) call_of[e.to.index()] = e.from;
    }
    for (const GraphLane& lane : graph.lanes()) {
      if (lane.lane.kind != LaneKind::kStream) continue;
      TaskId before;
      for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
        if (graph.task(t).removed || !IsGpu(graph.task(t).kind)) continue;
        const TaskId call = call_of[t.index()];
        if (call.valid() && before.valid()) {
          launched_[{graph.task(call).lane, graph.task(t).lane}].push_back({call, before, t});
        }
        before = t;
      }
    }
  }

  // For each stream, before the first operation that the thread launched after the stall: how long
  // it had nothing to do meanwhile, as a lag behind the operation before.
  std::vector<Edge> During(const Stall& stall) const {
    std::vector<Edge> idle;
    const LaneId thread = graph_.task(stall.task).lane;
    const Instant begin = (stall.gap ? timeline_.end : timeline_.start)[stall.task.index()];
    const Instant end = begin + stall.time;
    for (auto lanes = launched_.lower_bound({thread, LaneId(0)});
         lanes != launched_.end() && lanes->first.first == thread; ++lanes) {
      // A call that was held up launches behind all of it.
      const auto next = std::ranges::partition_point(lanes->second, [&](const Launched& l) {
        return l.call != stall.task && timeline_.start[l.call.index()] < end;
      });
      if (next == lanes->second.end()) continue;
      const Instant from = std::max(begin, timeline_.end[next->before.index()]);
      const Duration idle_time = timeline_.start[next->operation.index()] - from;
      const Duration time = stall.far ? stall.taken() : std::min(idle_time, stall.taken());
      if (time > Duration{})
        idle.push_back({.from = next->before, .to = next->operation, .lag = time});
    }
    return idle;
  }

 private:
  struct Launched {
    TaskId call, before, operation;
  };

  const Graph& graph_;
  const Timeline& timeline_;
  std::map<std::pair<LaneId, LaneId>, std::vector<Launched>> launched_;  // by thread and stream
};

// Lanes of their own for the waits of each thread.
class WaitLanes {
 public:
  explicit WaitLanes(Graph& graph)
      : graph_(graph), name_(graph.AddName("waits of a host that was held up")) {}

  LaneId Of(LaneId thread) {
    const auto [lane, fresh] = lanes_.try_emplace(thread);
    if (fresh) {
      lane->second =
          graph_.AddLane({.lane = {.kind = LaneKind::kChannel, .name = name_, .number = -1}});
    }
    return lane->second;
  }

 private:
  Graph& graph_;
  NameId name_;
  std::map<LaneId, LaneId> lanes_;
};

// The piece takes what it usually does; what it took is on `lane`, and the thread goes on behind
// it: with the task that is returned. What a call launches comes behind all of it, so that the wait
// is before a call.
TaskId AddWait(const Stall& s, NameId name, LaneId lane, Graph& graph) {
  const Task before = graph.task(s.task);
  const bool call = !s.gap && before.kind == TaskKind::kCall && before.lane_prev.valid();
  const TaskId from = call ? before.lane_prev : s.task;
  const bool at_end = s.gap || call;
  const Instant begin = before.recorded_start + (s.gap ? before.duration : Duration{});
  const Duration ahead = call ? graph.task(from).gap : Duration{};
  const TaskId work = graph.Append({.recorded_start = begin - ahead,
                                    .duration = call ? ahead + s.taken() : s.time,
                                    .name = name,
                                    .lane = lane,
                                    .scope = before.scope,
                                    .step = before.step,
                                    .kind = TaskKind::kHost});
  Task& piece = graph.mutable_task(s.task);
  if (!s.gap) piece.duration = s.kept;
  if (!call) piece.gap = s.gap ? s.kept : Duration{};
  const TaskId wait = graph.InsertAfter(from, {.recorded_start = call ? begin : begin + s.kept,
                                               .gap = at_end ? Duration{} : before.gap,
                                               .name = name,
                                               .lane = before.lane,
                                               .scope = before.scope,
                                               .layer = before.layer,
                                               .step = before.step,
                                               .kind = TaskKind::kWait});
  graph.AddEdge({.from = from,
                 .to = work,
                 .rule = Rule::kHandOff,
                 .from_anchor = at_end ? Anchor::kEnd : Anchor::kStart});
  graph.AddEdge({.from = work, .to = wait, .rule = Rule::kHandOff, .to_anchor = Anchor::kEnd});
  return call ? s.task : wait;
}

// What a stream waited for a batch, as a task in which the batch is fetched, too.
void AddTask(const Edge& idle, const Stall& s, Graph& graph, LaneId lane) {
  const Task& fetch = graph.task(s.task);
  const TaskId task = graph.Append({.recorded_start = fetch.recorded_start,
                                    .duration = idle.lag,
                                    .name = graph.AddName("(waits for a batch)"),
                                    .lane = lane,
                                    .scope = fetch.scope,
                                    .step = fetch.step,
                                    .kind = TaskKind::kHost,
                                    .phase = Phase::kData});
  graph.AddEdge({.from = idle.from, .to = task, .rule = Rule::kHandOff});
  graph.AddEdge({.from = task, .to = idle.to, .rule = Rule::kHandOff});
}

}  // namespace

void KeepAsWaits(std::span<const Stall> stalls, Graph& graph, const Timeline* timeline) {
  if (stalls.empty()) return;
  std::vector<Stall> in_order(stalls.begin(), stalls.end());
  std::ranges::sort(in_order, {}, [&](const Stall& s) {
    return std::pair(graph.task(s.task).recorded_start, s.gap);
  });
  std::optional<IdleStreams> streams;
  if (timeline != nullptr) streams.emplace(graph, *timeline);
  const NameId name = graph.AddName("(held up)");
  WaitLanes lanes(graph);
  std::map<TaskId, TaskId> behind;  // where the gap after such a task is now
  for (Stall& s : in_order) {
    const std::vector<Edge> idle = streams ? streams->During(s) : std::vector<Edge>();
    if (s.kind == StallKind::kBatch) {
      for (const Edge& e : idle) AddTask(e, s, graph, lanes.Of(graph.task(e.to).lane));
      continue;
    }
    const auto moved = s.gap ? behind.find(s.task) : behind.end();
    if (moved != behind.end()) s.task = moved->second;
    const TaskId wait = AddWait(s, name, lanes.Of(graph.task(s.task).lane), graph);
    if (!s.gap) behind[s.task] = wait;
    for (Edge e : idle) {
      e.rule = Rule::kHandOff;
      graph.AddEdge(e);
    }
  }
}

bool IsHeldUp(const Graph& graph, TaskId task) {
  const Task& t = graph.task(task);
  return t.kind == TaskKind::kHost && graph.lane(t.lane).lane.kind == LaneKind::kChannel;
}

}  // namespace daydream
