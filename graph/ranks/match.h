// Which collectives of several ranks are one: by communicator and sequence number where these were
// recorded, else by order with the shift that fits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ranks/collectives.h"

namespace daydream {

enum class ProblemKind : uint8_t {
  kMismatch,     // members of a row do different things, or one is missing in the middle
  kWindowEdge,   // the recording of a rank begins later or ends earlier
  kNotRecorded,  // a member has no file
  kDeadlock,     // two ranks issue two collectives in opposite order
  kClock,        // an end before the last arrival
};
std::string_view ProblemName(ProblemKind kind);  // "window_edge"

struct RankProblem {
  ProblemKind kind = ProblemKind::kMismatch;
  std::vector<int32_t> ranks;  // as the ranks are numbered, ascending
  std::string message;
  std::string communicator = {};  // "group 0 (ranks 0, 1)", "a group of 8"; empty: no single one
  int64_t sequence = -1;          // of the collective; -1: not recorded, or no single one
};

struct RowMember {
  uint32_t rank = 0;        // place among the recorded ranks
  uint32_t collective = 0;  // row of its RankCollectives::all
};

// One collective, or one transfer between two ranks.
struct MatchedRow {
  uint32_t communicator = 0;
  CollectiveKind kind = CollectiveKind::kUnknown;
  uint64_t bytes = 0;
  uint32_t grid = 0;
  int64_t sequence = -1;
  // Members it has, recorded or not; where no file tells, the recorded ones of its communicator.
  int32_t size = 0;
  std::vector<RowMember> members;  // by rank, each once
  bool whole() const { return static_cast<int32_t>(members.size()) >= size; }
};

struct MatchedRanks {
  uint32_t communicators = 0;
  std::vector<MatchedRow> rows;  // by communicator, then in the order of its members
  std::vector<RankProblem> problems;
  size_t unmatched = 0;   // collectives that no row has, of recorded ranks
  bool by_order = false;  // some rows were matched without sequence numbers
  // Two or more ranks share a row.
  bool joint() const;
  bool deadlock() const;
};

// O(collectives x 66) where there are no sequence numbers, else O(collectives log collectives).
MatchedRanks MatchCollectives(std::span<const RankCollectives> ranks);

}  // namespace daydream
