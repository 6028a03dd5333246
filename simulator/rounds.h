// One step played over and over without copies of it: what a replay of StepRepeater::Repeat() tells
// of its rounds, in a tenth of the memory. Rounds have all tasks and edges in common, so that each
// is played over the instants of the one before; only what a later round waits for is kept.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/time.h"
#include "graph/graph.h"
#include "graph/repeat.h"
#include "graph/step_windows.h"

namespace daydream {

struct PlayedRounds {
  std::vector<StepExtent> extents;                // of each round
  std::vector<std::optional<Instant>> host_ends;  // where its host's work ends; none: it has none
};

// As many `times` as Repeat() would have made copies of `step`; of `also`, each second task waits
// for the end of the first, of the round before. None where only copies tell: lanes may reorder,
// streams share a launch queue, calls of which no operation was recorded or which record events
// wait for room in one, or tasks wait for themselves. REQUIRES: times > 2. O(tasks and edges of the
// step x times).
using Awaited = std::pair<TaskId, TaskId>;
std::optional<PlayedRounds> PlayRounds(const StepRepeater& repeater, uint16_t step, size_t times,
                                       std::span<const Awaited> also = {});

// Four rounds, which are plenty (graph/repeat.h), of a step by itself: played once for graphs that
// share facts. `repeater()`: of `graph`, where it is needed.
inline constexpr size_t kRounds = 4;
std::shared_ptr<const std::optional<PlayedRounds>> RoundsOf(
    const Graph& graph, uint16_t step, absl::FunctionRef<const StepRepeater&()> repeater);

}  // namespace daydream
