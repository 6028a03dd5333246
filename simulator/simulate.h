// Plays a graph forward. The meaning of a graph is written at the top of graph/graph.h; this is
// the only code that computes it (tests/simulator/oracle.h holds a slow second opinion).
//
// Deterministic: equal graphs give equal timelines on every machine. Integer arithmetic only.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "graph/graph.h"
#include "simulator/timeline.h"

namespace daydream {

struct SimulateOptions {
  bool blockers = false;  // record what decided each instant; costs about half as much again
  // That CriticalPath() can be asked: the same, but only where some lane may reorder.
  bool path = false;
  bool once = false;  // that the graph is played no second time: no plan pays
};

// Plays `graph`. Graphs whose lanes all have a fixed order take the linear path (Plan below);
// one lane that may reorder sends the whole graph through the event queue (schedule.h).
// O(tasks + edges), with the event queue O((tasks + edges) log tasks). Keeps no reference.
// Fails with FailedPrecondition on a cycle; the message lists it. A negative lag can make a wait
// for the future, never an end before a start.
// A graph with a Graph::wiring() keeps its plan for the next replay.
absl::StatusOr<Timeline> Simulate(const Graph& graph, SimulateOptions options = {});

// The starts and ends of a graph that is played no second time, with these durations, gaps and lags
// in place of its own, by TaskId and place in Graph::edges(). None where lanes may reorder or tasks
// wait for themselves. O(tasks + edges).
std::optional<Timeline> PlayOnceWith(const Graph& graph, std::span<const Duration> duration,
                                     std::span<const Duration> gap, std::span<const Edge> edges);

struct Program;  // simulator/program.h

// The linear path in two parts, for many replays of one structure: the order of evaluation is
// found once, durations and gaps are read from the graph (or given) at each run.
class Plan {
 public:
  // FailedPrecondition on a cycle, or when a lane may reorder.
  static absl::StatusOr<Plan> Make(const Graph& graph);
  // The same, made once for all graphs of one Graph::wiring() and kept as long as their tables.
  static absl::StatusOr<Plan> Of(const Graph& graph);

  // Whether a plan made for `a` can replay `b`: same tasks, lanes and edges; only Task::duration,
  // Task::gap and Edge::lag may differ. O(tasks + edges), faster than Make().
  static bool SameStructure(const Graph& a, const Graph& b);

  // Replays with the durations, gaps and lags that `graph` has now. REQUIRES: SameStructure() as
  // the one that the plan was made for.
  Timeline Run(const Graph& graph, SimulateOptions options = {}) const;
  // The same with one value a task, indexed by TaskId, and the lags that the plan was made with.
  Timeline Run(std::span<const Duration> duration, std::span<const Duration> gap) const;
  // ... into the room that `timeline` has.
  void Run(std::span<const Duration> duration, std::span<const Duration> gap,
           Timeline& timeline) const;
  // The same with these and the lags that `edges` have now: those of the graph. Starts and ends,
  // without a makespan, into memory that many replays use.
  void Run(std::span<const Duration> duration, std::span<const Duration> gap,
           std::span<const Edge> edges, Timeline& timeline) const;

  const Program& program() const;  // for simulator/

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// From the first start to the last end; 0 without tasks.
Duration WholeLength(const Timeline& timeline);

// Period of every step but the first, by the windows of graph/step_windows.h: steps - 1 entries. In
// steps that count, what they use up of the host's lead counts, too (graph/host_lead.h). Of the
// lone step its cycle (simulator/lone_step.h), which takes about four replays of it more. For a
// graph with one step one entry: its whole length from the first start to the last end.
std::vector<Duration> StepPeriods(const Graph& graph, const Timeline& timeline);
// Simulate() and StepPeriods() of what that gives, in less than both take one after the other.
struct PlayedSteps {
  Timeline timeline;
  std::vector<Duration> periods;
};
absl::StatusOr<PlayedSteps> PlaySteps(const Graph& graph);
// StepPeriods() with all steps by their windows: no cycle, of a graph that is played with others.
std::vector<Duration> StepPeriodsBeside(const Graph& graph, const Timeline& timeline);

// Longer by what a step used up of the lead, but no longer than the host takes when streams take no
// time, which is asked for only where something was used up: each period that counts.
void AddUsedUp(std::span<const GraphStep> steps, Duration used_up,
               absl::FunctionRef<Duration()> host_period, std::span<Duration> periods);

// Mean period over the measured steps: "the step time" everywhere in daydream, what a stopwatch
// would show (docs/decisions/004-step-time-is-the-gpu-period.md).
Duration StepTime(const Graph& graph, const Timeline& timeline);
Duration StepTime(const Graph& graph, std::span<const Duration> periods);
Duration MeanOf(std::span<const Duration> durations);  // 0 of none
// The same from the periods of at least two steps.
Duration StepTimeOf(std::span<const GraphStep> steps, std::span<const Duration> periods);

}  // namespace daydream
