// A compiled graph without the tasks that have no edge: what they take is added to the gap of the
// one before them on their lane. Internal to simulator/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "simulator/program.h"

namespace daydream {

// A row has two sums, 2 * row of what its duration is made of and 2 * row + 1 of its gap.
struct Contracted {
  Program program;               // Row::task counts rows, and sources are rows; each has an Into
  std::vector<uint32_t> row_of;  // by task; of those that are left
  // By task: where its duration and its gap are added. A removed task adds to nowhere().
  struct Sums {
    uint32_t duration, gap;
  };
  std::vector<Sums> sums_of;
  std::vector<int64_t> sums;  // as the graph has them, and one that nobody reads
  uint32_t nowhere() const { return static_cast<uint32_t>(sums.size() - 1); }
};

// Keeps the rows of `graph`, whose program is `whole`, whose start or end is in `starts` or `ends`.
// Exact for durations that are not negative and for gaps that are negative only where the graph has
// such a gap. O(tasks + edges).
Contracted Contract(const Graph& graph, const Program& whole, std::span<const TaskId> starts,
                    std::span<const TaskId> ends);

// No rows, and a place for each task: what is told of it goes to all rounds of a lone step.
Contracted PlaceOfEach(const Graph& graph);

// Eight scenarios side by side, each array as [place][scenario]: `sums` has a place for each sum,
// `start` and `end` one for each row and one more. Of those only what is read is written.
constexpr size_t kSideBySide = 8;
void EvaluateEight(const Program& p, const int64_t* sums, int64_t* start, int64_t* end);
// The same of one scenario.
void EvaluateOne(const Program& p, const int64_t* sums, int64_t* start, int64_t* end);

}  // namespace daydream
