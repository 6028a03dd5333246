// The lone step of a recording (graph/step_windows.h), as it repeats: the only one that counts, or
// the first of them where nothing says where the GPU work before it would end. Its window says when
// it began and ended in the recording, and nothing of what would overlap its neighbours: a host
// that is made faster runs ahead into the next step, and what it waits for is then work of that
// one. The first of several would do so, too, but there is no step before it to wait for. Played
// four times by itself (graph/repeat.h), its last round is the cycle of a run that goes on. What
// ranks exchange and nothing of the step waits for, the GPU work of the next one does: else nobody
// had use for it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/step_windows.h"
#include "simulator/rounds.h"

namespace daydream {

// The place of that step in steps(); none where the graph is not of a recording, where GPU work is
// known on both sides of the step, which tells where it ends, and where the step used up a lead of
// its host (graph/host_lead.h), so that the next one would not be like it. O(steps).
std::optional<size_t> LoneStepOf(const Graph& graph);

// StepPeriods() of a graph of two steps or more: by the StepExtents() of a replay, and when its
// tasks start there.
std::vector<Duration> StepPeriods(const Graph& graph, std::span<const StepExtent> extents,
                                  std::span<const Instant> start);

// The steps of `graph` with none that counts but those whose windows say how long they are: without
// the lone one. O(steps).
std::vector<GraphStep> StepsBehind(const Graph& graph, size_t lone);

// What ranks exchange and nothing of the step waits for, and the first GPU work of other streams,
// which waits for it in the next round. O(tasks + edges).
std::vector<Awaited> AwaitedByNext(const Graph& graph, size_t step);

// REQUIRES: step == LoneStepOf(graph). O(tasks + edges).
class LoneStep {
 public:
  static constexpr size_t kRounds = daydream::kRounds;
  LoneStep(const Graph& graph, size_t step);
  const Graph& rounds() const { return rounds_; }
  // The tasks of the step. In round k of rounds(), the i-th is the one with number
  // k * tasks().size() + i.
  std::span<const TaskId> tasks() const { return tasks_; }

 private:
  std::vector<TaskId> tasks_;
  Graph rounds_;
};

// How long the last round of a lone step is, as CycleOf() has it, without copies where they tell no
// more; none where it cannot be played. O(tasks + edges).
std::optional<Duration> CycleOfLone(const Graph& graph, size_t step);

// How long the last round of rounds() is, by its GPU or by its host, whichever takes longer: what
// nothing waits for repeats in a time of its own. O(tasks).
Duration CycleOf(const Graph& rounds, std::span<const Instant> start, std::span<const Instant> end);
// The same from the windows, and from where the host's work of each round ends; none: no host work.
Duration CycleOf(std::span<const StepWindow> windows,
                 std::span<const std::optional<Instant>> host_ends);

}  // namespace daydream
