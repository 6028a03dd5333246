// A compiled graph without the tasks that have no edge: what they take is added to the gap of the
// one before them on their lane. Internal to simulator/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/large_pages.h"
#include "simulator/draw_eight.h"
#include "simulator/program.h"

namespace daydream {

// A row has two sums, 2 * row of what its duration is made of and 2 * row + 1 of its gap.
struct Contracted {
  // Each row has an Into. Row::task and sources are places of instants, which rows take turns with,
  // and Program::tasks counts them.
  Program program;
  static constexpr uint32_t kNothing = 0;  // the place of what is no row
  std::vector<uint32_t> place_of;          // by task; of those whose starts or ends are kept
  // By task: where its duration and its gap are added. A removed task adds to nowhere().
  struct Sums {
    uint32_t duration, gap;
  };
  std::vector<Sums> sums_of;
  std::vector<int64_t> sums;  // as the graph has them, and one that nobody reads
  uint32_t nowhere() const { return static_cast<uint32_t>(sums.size() - 1); }
};

// Keeps the starts and ends of these of `graph`, whose program is `whole`.
// Exact for durations that are not negative and for gaps that are negative only where the graph has
// such a gap. O(tasks + edges).
Contracted Contract(const Graph& graph, const Program& whole, std::span<const TaskId> starts,
                    std::span<const TaskId> ends);

// No rows, and a place for each task: what is told of it goes to all rounds of a lone step.
Contracted PlaceOfEach(const Graph& graph);

// Where an evaluation stands: its next row, and what lanes mean for the rows that follow.
struct Standing {
  size_t row = 0, more = 0;
  LargeArray lanes;
};

// Eight scenarios side by side, each array as [place][scenario]. A Source is the place of its
// instant: 2 * Program::tasks of them.
constexpr size_t kSideBySide = 8;
void EvaluateEight(const Program& p, const int64_t* sums, int64_t* instants);
// The same of no more than the next `rows` rows, whose sums these are.
void EvaluateEight(const Program& p, Standing& at, size_t rows, const int64_t* sums,
                   int64_t* instants);
// Eight scenarios a group, whose sums are `base` and what they draw: some rows of all groups before
// the next ones, so that what is drawn from is read once. The instants of a group stand behind
// those of the group before.
void EvaluateDrawn(const Program& p, std::span<const int64_t> base, DrawnSums drawn,
                   std::span<const std::vector<Choice>> groups, int64_t* instants);
// One scenario.
void EvaluateOne(const Program& p, const int64_t* sums, int64_t* instants);

}  // namespace daydream
