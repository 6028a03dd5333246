#include "transforms/scenario/option_edits.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "graph/call_kind.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/edits/blocking_copies.h"
#include "transforms/edits/inserted_kernel.h"

namespace daydream {
namespace {

auto RecordedKey(const Graph& graph, TaskId t) {
  const Task& task = graph.task(t);
  return std::tuple(task.step, task.recorded_start, t);
}

// The last task of `lane` that ran before `t` by the record, searching from `from`; None: none did.
TaskId PlaceOnLane(const Graph& graph, LaneId lane, TaskId t, TaskId from) {
  TaskId place = from;
  TaskId next = from.valid() ? graph.task(from).lane_next : graph.lane(lane).first;
  for (; next.valid(); next = graph.task(next).lane_next) {
    const Task &a = graph.task(next), &b = graph.task(t);
    if (std::pair(a.step, a.recorded_start) > std::pair(b.step, b.recorded_start)) break;
    place = next;
  }
  return place;
}

class TaskMarks {
 public:
  TaskMarks(const Graph& graph, std::span<const TaskId> tasks) : marks_(graph.size(), false) {
    for (TaskId t : tasks) marks_[t.index()] = true;
  }
  bool operator[](TaskId t) const { return t.index() < marks_.size() && marks_[t.index()]; }

 private:
  std::vector<bool> marks_;
};

bool Goes(const CopyDetail* copy, Memory to) {
  if (copy == nullptr) return false;
  bool to_device = copy->to == Memory::kDevice, from_device = copy->from == Memory::kDevice;
  return to == Memory::kDevice ? to_device && !from_device : from_device && !to_device;
}

}  // namespace

std::vector<TaskId> InRecordedOrder(const Graph& graph, std::span<const TaskId> tasks) {
  std::vector<TaskId> order(tasks.begin(), tasks.end());
  std::sort(order.begin(), order.end(),
            [&](TaskId a, TaskId b) { return RecordedKey(graph, a) < RecordedKey(graph, b); });
  return order;
}

LaneId FindStream(Editor& edit, const StreamTarget& target, LaneId like) {
  const Graph& graph = edit.graph();
  const GraphLane near = graph.lane(like);
  for (size_t i = 0; i < graph.lanes().size(); ++i) {
    const Lane& lane = graph.lanes()[i].lane;
    if (lane.kind != LaneKind::kStream || lane.device != near.lane.device ||
        lane.rank != near.lane.rank) {
      continue;
    }
    if (target.name.empty() ? lane.number == target.number : graph.Name(lane.name) == target.name) {
      return LaneId(i);
    }
  }
  if (target.name.empty()) return LaneId::None();
  return edit.NewStream(target.name, like);
}

size_t MoveToStream(Editor& edit, std::span<const TaskId> tasks, const MoveAction& action) {
  const Graph& graph = edit.graph();
  TaskMarks moving(graph, tasks);
  std::map<LaneId, TaskId> last;  // where the last task went, by lane
  size_t stayed = 0;
  struct Neighbours {
    TaskId before, after;
  };
  // Found before anything moves: the nearest tasks that stay.
  std::map<TaskId, Neighbours> neighbours;
  for (const GraphLane& lane : graph.lanes()) {
    TaskId before;
    std::vector<TaskId> waiting;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      if (graph.task(t).removed || graph.task(t).kind == TaskKind::kDelay) continue;
      if (moving[t]) {
        neighbours[t].before = before;
        waiting.push_back(t);
        continue;
      }
      for (TaskId w : waiting) neighbours[w].after = t;
      waiting.clear();
      before = t;
    }
  }
  for (TaskId t : InRecordedOrder(graph, tasks)) {
    LaneId lane = IsGpu(graph.task(t).kind) ? FindStream(edit, action.stream, graph.task(t).lane)
                                            : LaneId::None();
    if (!lane.valid() || lane == graph.task(t).lane) {
      ++stayed;
      continue;
    }
    TaskId delay = graph.task(t).lane_prev;
    if (delay.valid() && graph.task(delay).kind == TaskKind::kDelay) edit.Remove({&delay, 1});
    if (graph.task(t).gap != Duration{}) edit.SetGap(t, {});
    auto [it, inserted] = last.try_emplace(lane);
    TaskId place = PlaceOnLane(graph, lane, t, it->second);
    edit.Move(t, lane, place);
    it->second = t;
    bool before = action.keep == KeepOrder::kBoth || action.keep == KeepOrder::kBefore;
    bool after = action.keep == KeepOrder::kBoth || action.keep == KeepOrder::kAfter;
    if (action.keep == KeepOrder::kByDirection) {
      const CopyDetail* copy = graph.task(t).kind == TaskKind::kMemcpy ? graph.Copy(t) : nullptr;
      before = !Goes(copy, Memory::kDevice);
      after = !Goes(copy, Memory::kPageable);
    }
    const Neighbours& n = neighbours[t];
    if (before && n.before.valid()) edit.AddEdge(n.before, t);
    if (after && n.after.valid()) edit.AddEdge(t, n.after);
  }
  return stayed;
}

void UnblockHost(Editor& edit, std::span<const TaskId> tasks) {
  const Graph& graph = edit.graph();
  const Duration copy_call = MeasureHostCosts(graph).copy;
  TaskMarks unblocked(graph, tasks);
  const std::vector<bool> waits = WaitsForGpu(graph);
  std::vector<bool> calls(graph.size(), false);
  for (TaskId t : tasks) {
    TaskId call = edit.LaunchOf(t);
    if (!call.valid()) continue;
    calls[call.index()] = true;
    const bool copy = graph.task(t).kind == TaskKind::kMemcpy;
    ReturnAtOnce(edit, call, waits, copy ? copy_call : graph.task(call).duration);
  }
  edit.DropEdges([&](const Graph&, const Edge& e) {
    return e.rule == Rule::kHostWait && unblocked[e.from] && calls[e.to.index()];
  });
}

namespace {

// Moves `call`, with the waiting part of it, behind `place` on the lane of that. The host work that
// the lane does after a call stays where it was. Returns what was put there last.
TaskId MoveCall(Editor& edit, TaskId call, TaskId place) {
  const Graph& graph = edit.graph();
  std::vector<TaskId> parts = {call};
  if (TaskId wait = OwnWait(graph, call); wait.valid()) parts.push_back(wait);
  for (TaskId t : parts) {
    const Duration gap = graph.task(t).gap;
    const TaskId before = graph.task(t).lane_prev;
    if (before == place) {  // it is there already
      place = t;
      continue;
    }
    if (gap != Duration{} && before.valid()) {
      edit.SetGap(before, graph.task(before).gap + gap);
      edit.SetGap(t, {});
    }
    edit.Move(t, graph.task(place).lane, place);
    place = t;
  }
  return place;
}

}  // namespace

size_t ShiftToPreviousStep(Editor& edit, std::span<const TaskId> tasks,
                           std::span<const TaskId> after, Anchor edge, bool launch) {
  const Graph& graph = edit.graph();
  std::map<uint16_t, TaskId> first;  // of `after`, by step
  for (TaskId t : InRecordedOrder(graph, after)) first.try_emplace(graph.task(t).step, t);
  std::vector<std::pair<TaskId, TaskId>> shifted;
  size_t stayed = 0;
  for (TaskId t : tasks) {
    const Task& task = graph.task(t);
    if (task.step == 0) continue;
    auto it = first.find(static_cast<uint16_t>(task.step - 1));
    const bool calls = !launch || (it != first.end() && edit.LaunchOf(t).valid() &&
                                   edit.LaunchOf(it->second).valid());
    if (IsGpu(task.kind) && it != first.end() && calls) {
      shifted.emplace_back(it->second, t);
    } else {
      ++stayed;
    }
  }
  if (launch) {
    std::map<TaskId, TaskId> place;  // by the call that they go behind
    for (const auto& [from, to] : shifted) {
      const TaskId home = edit.LaunchOf(from), call = edit.LaunchOf(to);
      auto [it, fresh] = place.try_emplace(home, home);
      if (TaskId wait = OwnWait(graph, home); fresh && wait.valid()) it->second = wait;
      if (call != home && graph.task(call).step == graph.task(to).step) {
        it->second = MoveCall(edit, call, it->second);
        edit.SetStep(call, graph.task(home).step);
      }
    }
  } else {
    std::vector<bool> free(graph.size(), false);
    for (const auto& [from, to] : shifted) free[to.index()] = true;
    edit.DropEdges(
        [&](const Graph&, const Edge& e) { return e.rule == Rule::kLaunch && free[e.to.index()]; });
  }
  for (const auto& [from, to] : shifted) {
    edit.AddEdge(from, to, {}, Rule::kTransform, edge, Anchor::kStart);
  }
  return stayed;
}

std::vector<std::vector<TaskId>> GroupTasks(const Graph& graph, std::span<const TaskId> tasks,
                                            std::span<const GroupKey> keys) {
  auto by = [&](GroupKey key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  TaskMarks wanted(graph, tasks);
  std::map<Key, std::vector<TaskId>> groups;
  for (size_t l = 0; l < graph.lanes().size(); ++l) {
    uint32_t run = 0;
    for (TaskId t = graph.lanes()[l].first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      if (task.removed || task.kind == TaskKind::kDelay) continue;
      if (!wanted[t]) {
        ++run;
        continue;
      }
      groups[{static_cast<uint32_t>(l), task.step, by(GroupKey::kModule) ? task.layer.value : 0u,
              by(GroupKey::kPhase) ? static_cast<uint32_t>(task.phase) : 0u,
              by(GroupKey::kOp) ? task.scope.value : 0u, by(GroupKey::kRun) ? run : 0u}]
          .push_back(t);
    }
  }
  std::vector<std::vector<TaskId>> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  std::sort(out.begin(), out.end());
  return out;
}

TaskId InsertBeside(Editor& edit, TaskId anchor, Task task, const InsertAction& action,
                    LaneId stream, Duration call_time) {
  const Graph& graph = edit.graph();
  const Task beside = graph.task(anchor);
  TaskId launch = edit.LaunchOf(anchor);
  task.recorded_start = beside.recorded_start;
  task.scope = beside.scope, task.layer = beside.layer;
  task.step = beside.step, task.phase = beside.phase;
  TaskId added;
  if (stream.valid() && stream != beside.lane) {
    task.lane = stream;
    TaskId place = PlaceOnLane(graph, stream, anchor, TaskId::None());
    added = place.valid()                      ? edit.InsertAfter(place, task)
            : graph.lane(stream).first.valid() ? edit.InsertBefore(graph.lane(stream).first, task)
                                               : edit.Append(task);
    edit.AddEdge(action.before ? added : anchor, action.before ? anchor : added);
  } else {
    task.lane = beside.lane;
    added = action.before ? edit.InsertBefore(anchor, task) : edit.InsertAfter(anchor, task);
  }
  if (!action.launch || !launch.valid()) return added;
  const Task host = graph.task(launch);
  // What a CUDA graph launches needs no call of its own.
  if (IsGraphLaunch(graph, host)) {
    edit.AddEdge(launch, added, {}, Rule::kLaunch);
    return added;
  }
  const std::string_view name =
      task.kind == TaskKind::kMemcpy ? "cudaMemcpyAsync" : "cudaLaunchKernel";
  const Task call = CallBeside(host, edit.graph().AddName(name), call_time);
  const TaskId wait = OwnWait(graph, launch), behind = wait.valid() ? wait : launch;
  TaskId called = action.before ? edit.InsertBefore(launch, call) : edit.InsertAfter(behind, call);
  edit.AddEdge(called, added, {}, Rule::kLaunch);
  return added;
}

std::vector<std::pair<TaskId, TaskId>> PairsInOrder(const Graph& graph,
                                                    std::span<const TaskId> from,
                                                    std::span<const TaskId> to) {
  std::vector<TaskId> sources = InRecordedOrder(graph, from);
  std::vector<std::pair<TaskId, TaskId>> pairs;
  for (TaskId t : to) {
    auto it = std::lower_bound(sources.begin(), sources.end(), t, [&](TaskId a, TaskId b) {
      return RecordedKey(graph, a) < RecordedKey(graph, b);
    });
    if (it == sources.begin()) continue;
    TaskId before = *std::prev(it);
    if (graph.task(before).step == graph.task(t).step && before != t) pairs.emplace_back(before, t);
  }
  return pairs;
}

}  // namespace daydream
