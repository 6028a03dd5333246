// What the step would gain if one kind of work ran faster, by how much faster: the virtual
// speed-ups of Coz (SOSP'15), which in a replay are exact and need no delays.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "report/predict/why.h"

namespace daydream {

enum class Family : uint8_t { kKernels, kLayer, kCollective, kCopies, kCall, kHost, kSelected };
std::string_view Name(Family f);  // "kernels", "layer", "call"

// Some work of the recorded steps.
struct WorkGroup {
  Family family = Family::kKernels;
  std::string name;  // "gemm", "layer1.0.conv1", "cudaLaunchKernel", a selector
  std::vector<TaskId> tasks;
  // Host work only: parts of it are the durations of `tasks` alone, and the time after each of
  // `gaps`. Else host tasks shrink together with the time after them.
  bool apart = false;
  std::vector<TaskId> gaps = {};
};

// One group for every kernel class, layer (its GPU work), collective, kind of copy and API call,
// for all other host work, and for each part of that by report/host_table.h: operators, ranges,
// Python functions, and time in none of them. In this order, each by name.
std::vector<WorkGroup> WorkGroups(const Graph& graph);

struct SpeedupCurve {
  Family family = Family::kKernels;
  std::string name;
  Duration work;  // per step, with the host work that follows host tasks
  double calls = 0;
  // By point: the step with so much of the work taken away. Of flat curves that were not asked for
  // in full, the first and the last one.
  std::vector<Duration> steps;
  // Flat: all the work taken away saves less than 0.5 % of the step.
  bool flat = true;
  // Where the curve bends, as the share of the work that is taken away: where it is furthest above
  // the straight line between its ends, when that is at least a tenth of all that can be gained;
  // to a twentieth of the distance of two points. From there on something else holds the step up.
  std::optional<double> bend;
  // What that is: what grows most on the critical path from the whole work to half of what is left
  // at the bend. At the bend itself both are as long.
  std::optional<Limiter> next;
  Duration saved() const { return steps.front() - steps.back(); }
};

struct CausalOptions {
  size_t points = 20;        // evenly from nothing to everything; the curve has one more
  size_t most = 0;           // curves of each family: those with most work; 0 = all
  bool flat_in_full = true;  // all points of flat curves, too
  unsigned jobs = 1;
  std::function<void(size_t done, size_t total)> progress;
  // Asked from any thread: true once nothing more is to be begun.
  std::function<bool()> stopped = {};
};

struct CausalProfile {
  Duration step;                     // replayed, unchanged
  std::vector<SpeedupCurve> curves;  // what saves most when it is gone comes first
  size_t left_out = 0;               // groups beyond CausalOptions::most
  size_t unplayed = 0;               // curves that are missing: it was told to stop
  double share(size_t point) const;  // of the work that is taken away at this point
  size_t points = 0;
};

// Plays every group at every point, eight at a time (simulator/step_batch.h). A group that is
// x faster gives exactly what `speedup` of the same tasks gives: the duration of each task and
// the host work after it shrink, and tasks that waited for processors held by it wait less. The
// same for any `jobs`. FailedPrecondition when a lane may reorder.
absl::StatusOr<CausalProfile> ProfileCauses(const Graph& graph, std::span<const WorkGroup> groups,
                                            const CausalOptions& options = {});

}  // namespace daydream
