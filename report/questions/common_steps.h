// Ranks that recorded other numbers of steps: the steps that all of them recorded.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "graph/build.h"
#include "graph/ranks/match.h"

namespace daydream {

// Of one rank, what it and all others recorded: [begin, end) on its own clock.
struct CommonPart {
  static constexpr Instant kEnd{std::numeric_limits<int64_t>::max()};
  Instant begin = Instant::Min(), end = kEnd;
  bool whole() const { return begin == Instant::Min() && end == kEnd; }
};
struct CommonSteps {
  std::vector<CommonPart> parts;  // by rank
  RankProblem problem;            // who lacks steps, and what is played
};

// Where whole steps at the begin or end of a rank hold collectives that another recorded rank
// lacks: such a rank would go on in them without the other, or wait for it as the recording did,
// whatever is changed. Where one lacks a step between others, the longest run on one side of it.
// None when all recorded the same steps, or no step is left. O(rows + steps) for each such place.
std::optional<CommonSteps> FindCommonSteps(std::span<const BuiltGraph> built,
                                           std::span<const RankCollectives> ranks,
                                           const MatchedRanks& matched);

// Rows without all members that were recorded.
size_t RowsThatLackARecordedRank(const MatchedRanks& matched);

}  // namespace daydream
