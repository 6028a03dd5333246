// What takes a place in a launch queue. For rule_queue.cc and queue.cc.
#pragma once

#include <span>
#include <vector>

#include "graph/call_kind.h"
#include "graph/graph.h"

namespace daydream {

struct Builder;

// Whether a call of that kind waits for room in a launch queue.
constexpr bool MayBlock(CallKind kind) {
  return kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch ||
         kind == CallKind::kCopyAsync || kind == CallKind::kMemset;
}

// Whether a call records an event: such calls find no room in a full queue, but take none.
bool RecordsEvent(const Graph& graph, TaskId call);

// What became of a call that submits work.
struct Outcome {
  LaneId stream;       // None: no operation was recorded
  bool place = false;  // it took a place in the stream's queue
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// A call, as it was recorded.
struct SubmittingCall {
  TaskId task;
  NameId name;
  Instant start;
  Outcome outcome;
};

// Whether some call that is left submits work of which no operation was recorded: without, there is
// nothing to find below. `outcome_of`: by TaskId. O(tasks), in the order of memory.
bool AnyUnrecorded(const Graph& graph, std::span<const Outcome> outcome_of);
// The same of some tasks; `submitted`: by place among them.
bool AnyUnrecorded(const Graph& graph, std::span<const TaskId> tasks,
                   const std::vector<bool>& submitted);

// By stream: the calls of the end of the window whose operations were not recorded, but had a place
// in its queue, in order. What became of them is told by the calls of the same API on their thread
// before; a copy that no pattern tells goes between host and device. `calls`: of each thread,
// by LaneId, in its order; those that submit nothing may be among them.
std::vector<std::vector<TaskId>> UnrecordedLaunches(
    const Graph& graph, std::span<const std::vector<SubmittingCall>> calls);
// The same of a graph that is built, once its operations are known. O(calls).
std::vector<std::vector<TaskId>> UnrecordedLaunches(const Builder& b);

// The streams that share the launch queue of `lane` (GraphLane::shared_queue), itself among them,
// in order. O(lanes).
std::vector<LaneId> StreamsOfQueue(const Graph& graph, LaneId lane);

}  // namespace daydream
