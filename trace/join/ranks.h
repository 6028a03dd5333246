// Traces of several ranks of one run as one trace, and one rank out of such a trace.
//
// In a trace of several ranks every lane says whose it is (Lane::rank), devices that several ranks
// call 0 have numbers of their own, and correlation ids are unique over all ranks. Rules that build
// a graph know one process: take a rank first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "trace/ddtrace/process.h"
#include "trace/trace.h"

namespace daydream {

struct RankTrace {
  std::string file;
  std::shared_ptr<const Trace> trace;
  RecordedProcess process;
};

// How the times of a rank were brought to those of the first one.
enum class ClockBasis : uint8_t {
  kSame,         // one machine has one clock
  kCollectives,  // equal collectives end together
  kWall,         // by the machines' wall clocks, which differ by what NTP leaves
  kNone,         // nothing is known: both begin at 0
};

struct RankClock {
  std::string file;
  Rank rank;
  ClockBasis basis = ClockBasis::kSame;
  Duration shift;          // kCollectives: what was added to the wall clocks
  size_t collectives = 0;  // kCollectives: that many were compared ...
  Duration spread;         // ... and half of their ends are at most so far apart
};

struct MergedRanks {
  std::shared_ptr<const Trace> trace;
  std::vector<RankClock> clocks;  // in the order of trace->ranks
};

// E0431 when these, ascending by rank, are not of one run: two files of one rank, one that does not
// say its rank beside others that do, other numbers of ranks, recordings of one machine that do not
// overlap in time, or of several machines that are an hour apart by their wall clocks; or two that
// hold the same events at the same times.
absl::Status CheckOneRun(const std::vector<RankTrace>& ranks);
// Of these reasons the last one alone, for ranks without numbers.
absl::Status CheckCopies(const std::vector<RankTrace>& ranks);

// The same events at the same times after the first of them, as in a file that was written twice:
// no two runs take the same nanoseconds throughout. Of fewer than 100 events this tells nothing.
bool SameEvents(const Trace& a, const Trace& b);

// `name` is the source of the merged trace. E0431 as of CheckOneRun().
absl::StatusOr<MergedRanks> MergeRanks(std::vector<RankTrace> ranks, std::string name);

// The events of trace.ranks[index], as a trace of one rank. The others are counted.
absl::StatusOr<std::shared_ptr<const Trace>> TakeRank(const Trace& trace, size_t index);

// What the host begins in [begin, end), and the GPU work that it launches there; of GPU work
// without a recorded launch, what starts there. The rest is counted, under `why`.
absl::StatusOr<std::shared_ptr<const Trace>> TakeTime(const Trace& trace, Instant begin,
                                                      Instant end, std::string_view why);

// Of each rank: time in all GPU work and in collectives, summed over streams.
struct RankWork {
  Duration gpu, collectives;
};
std::vector<RankWork> WorkOfRanks(const Trace& trace);

// The rank that waits least for the others: the one with the least time in collectives. The first
// when there are none.
size_t LastToArrive(const Trace& trace);

}  // namespace daydream
