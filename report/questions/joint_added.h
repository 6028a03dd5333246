// Collectives that edits put in, as rows that ranks meet in.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "report/questions/joint.h"

namespace daydream {

// What JoinGraphs() takes, with rows for what was added.
struct AddedRows {
  std::vector<RankCollectives> ranks;
  MatchedRanks matched;
  Meetings meetings;
  std::vector<Duration> transfer;
};

// Every rank was edited alike, so the k-th added collective of a stream is one on all of them. None
// when nothing was added, when what was added differs between ranks, or when the recorded groups
// hold a part of the ranks only, so that nothing says who meets whom. `transfer`: of the recorded
// rows. O(tasks + rows).
std::optional<AddedRows> MatchAdded(const JointRun& run, std::span<const Graph* const> graphs,
                                    std::span<const Duration> transfer);

}  // namespace daydream
