// Plays the joint graph of several ranks: once as recorded, and over and over until the step
// repeats.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/ranks/join.h"
#include "simulator/critical_path.h"
#include "simulator/simulate.h"

namespace daydream {

// What one rank does between its first start and its last end.
struct RankAccount {
  Duration span;            // in the window
  Duration own_cycle;       // of the rank alone, when it waits for nobody
  Duration own_step;        // mean period of its recorded steps then; own_cycle when it has one
  BoundBy own_path;         // what its own cycle consists of, by resource: the critical path
  Duration wait, transfer;  // in collectives; kernel = wait + transfer
  Duration exposed;         // in collectives while no other GPU work of the rank runs
  Duration compute;         // other GPU work, overlapping counted once
  Duration host;            // work of the host, without waits
  size_t last = 0;          // rows of which it was the last member to arrive
};

struct JointReplay {
  Timeline timeline;  // of the window, as the clocks are
  Duration window;    // first start to last end over all ranks
  // After which the window repeats, when each rank goes on where it ends. Of several ranks without
  // Ghosts: when who was not recorded would come the next time is not known.
  Duration period;
  bool settled = true;  // the period is the same from one round to the next
  std::vector<RankAccount> ranks;
  // [who][for]: how long ranks wait for the last to arrive, which is another one; behind the last
  // rank the Ghosts stand as one. Rows sum to RankAccount::wait.
  std::vector<std::vector<Duration>> waits;
};

// Does the work of numbers 0 to n - 1, each once; for callers that have threads in any order.
using ForEachRank = std::function<void(size_t n, const std::function<void(size_t)>& work)>;
void InOrder(size_t n, const std::function<void(size_t)>& work);

// `graphs` as given to JoinGraphs. FailedPrecondition on a cycle, which is a deadlock between
// ranks. O(tasks + edges) for each of at most 64 rounds; mostly five are enough. `each` plays the
// ranks alone, which takes room for one of them at a time.
absl::StatusOr<JointReplay> ReplayRanks(const JointGraph& joint,
                                        std::span<const Graph* const> graphs,
                                        const ForEachRank& each = InOrder);

// Mean period of the steps that were recorded, over the ranks: StepTime() of each on the joint
// timeline. 0 when no rank has two steps that count.
Duration RecordedStepTime(const JointGraph& joint, std::span<const Graph* const> graphs,
                          const Timeline& timeline);

}  // namespace daydream
