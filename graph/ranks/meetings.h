// When the last member of each collective arrived, and how long the transfer took from then on.
//
//   end(r) = max over members (arrival) + transfer
//
// is the one rule that couples ranks. A kernel of a collective is a wait, which ends at the
// Meeting, and a transfer, the same on all members.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/ranks/match.h"

namespace daydream {

// What to add to the times of each rank so that collectives end together on all: medians of the
// differences, which are good to some 10 us (ends agree to 30 us inside a node). By rank; a rank
// that shares no whole row with the others stays as it is. Their median is 0. O(rows x members).
struct ClockShifts {
  std::vector<Duration> shift;
  size_t rows = 0;            // behind them
  Duration spread, spread95;  // of the ends around the middle of their row, once shifted
};
ClockShifts FindClockShifts(std::span<const RankCollectives> ranks, const MatchedRanks& matched,
                            std::span<const Duration> given);

// Collectives of one kind, size and group: they take the same time.
struct TransferClass {
  CollectiveKind kind = CollectiveKind::kUnknown;
  uint64_t bytes = 0;
  uint32_t grid = 0;
  int32_t size = 0;
  size_t count = 0;
  Duration transfer;  // median over the rows
  // Shortest possible: rule N3. A transfer grows with the message and never faster than in
  // proportion, so T(S) = min over sizes S' of one kind and group of shortest(S') x max(1, S / S').
  Duration least;
  // All were late for somebody in every row, and a fabric would know better.
  Duration waits;  // sum over members
};

struct Meeting {
  Instant last;                  // arrival of the last recorded member, on the shared clock
  uint32_t who = 0;              // that member's rank; the first of them where several are
  Duration transfer;             // median over the members of end - Meeting, at least 0
  uint32_t class_of = 0;         // into `classes`
  std::optional<Instant> ghost;  // a member that nobody recorded arrived later still
  Instant instant() const { return ghost.has_value() ? *ghost : last; }
};

struct Meetings {
  std::vector<Meeting> rows;  // as MatchedRanks::rows
  std::vector<TransferClass> classes;
  size_t ghosts = 0;  // rows that wait for one
  size_t early = 0;   // members that end before the last arrival: wrong clock, or no meeting
};

// `shift` as above, by rank. Rows that lack members get a Ghost where the ends say that somebody
// came later than the recorded ones by a quarter of the transfer and 20 us. O(rows x members).
Meetings FindMeetings(std::span<const RankCollectives> ranks, const MatchedRanks& matched,
                      std::span<const Duration> shift);

}  // namespace daydream
