// The lead of a host that runs ahead of its GPU. A recording of a GPU that is behind begins with a
// backlog: work that was launched before it. Where an edit makes the GPU faster than the host, or
// the host slower than the GPU, the backlog is worked off sooner than the host brings more, and all
// the while steps are shorter than those of a run that goes on. There the lead is used up once, and
// then every step takes as long as the host.
//
// Example: 3 ms of lead, a host that needs 2 ms a step and a GPU that needs 1. Its next three steps
// begin 1 ms apart on the GPU. Of a thousand steps, 997 begin 2 ms apart.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/time.h"
#include "graph/graph.h"
#include "graph/step_windows.h"

namespace daydream {

inline bool OnStream(const Graph& graph, TaskId t) {
  return graph.lane(graph.task(t).lane).lane.kind == LaneKind::kStream;
}

constexpr int64_t kPartsThatDiffer = 100;  // chosen: less than such a part of a step is nothing

// A host of a recording that may be ahead of its GPU. Instants and durations are in ns of a replay.
class HostLead {
 public:
  // From the first step that counts to the step behind the last that does, or to the last one where
  // none is behind it. Where these are one, from the begin of its host's work to the end, and only
  // where that step used up a lead already (GraphStep::recorded_host). None where steps begin with
  // work whose launch is not known. O(steps).
  static std::optional<HostLead> Of(const Graph& graph);

  // The tasks whose starts matter: the call that launches the first GPU work of a step, and that
  // work; of the first step, then of the last. All are None where one step counts.
  using Starts = std::array<Instant, 4>;
  const std::array<TaskId, 4>& tasks() const { return tasks_; }
  bool one_step() const { return lone_.has_value(); }

  // What of the lead each step uses up beyond what was used up in the recording, when those tasks
  // start at `starts` and steps have these extents and are `step` long: a run that goes on takes so
  // much longer for each. What is below a hundredth of `step` is no more than what launches of
  // equal steps differ by, and counts as nothing; from there to two hundredths it grows to what it
  // is. Not negative. A lead also becomes less where the host waits for room in the launch queue,
  // which holds a number of operations whatever they take: what a step is longer by is no more than
  // what it lacks to what the host takes when streams take no time.
  Duration UsedUp(const Starts& starts, std::span<const StepExtent> extents, Duration step) const;
  // What the host takes for a step where streams take no time, so that steps are `step` long.
  Duration HostPeriod(std::span<const StepExtent> extents, Duration step) const;

 private:
  static Duration Drained(const Starts& starts) {
    return (starts[1] - starts[0]) - (starts[3] - starts[2]);
  }

  std::array<TaskId, 4> tasks_;
  std::optional<size_t> lone_;  // the only step that counts
  int64_t steps_ = 1;           // between the two
  Duration recorded_;           // drained in the recording, 0 where the lead grew
};

}  // namespace daydream
