// A Graph compiled for replay: one row a task in evaluation order. Four tasks of five have no edge;
// the others have an entry with room for those that nearly all of them have, and a side list holds
// the rest. Internal to simulator/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/edges_into.h"
#include "graph/graph.h"
#include "graph/step_windows.h"

namespace daydream {

// An anchor of a task as one number: task * 2 + (0 start, 1 end).
using Source = uint32_t;
constexpr Source SourceOf(TaskId t, Anchor a) { return t.value * 2 + (a == Anchor::kEnd ? 1 : 0); }

struct Row {
  static constexpr uint32_t kOverlaps = 1;  // bits of lane_and_flags below the lane
  static constexpr uint32_t kMore = 2;      // has an entry in Program::more
  static constexpr uint32_t kRemoved = 4;
  static constexpr uint32_t kStartIsRead = 8;  // an edge leaves from its start, or it is watched
  static constexpr uint32_t kEndIsRead = 16;   // the same of its end; only set by Contract()
  static constexpr uint32_t kEdges = 32;       // has an entry in Program::into
  static constexpr int kLaneShift = 6;
  uint32_t task;
  uint32_t lane_and_flags;
};
static_assert(sizeof(Row) == 8);

// Edges into a task.
struct Into {
  Source source[3];  // two edges into the start, one into the end; the row after the last = none
  int32_t lag[3];    // longer lags live in the side list
};

// What does not fit into a row.
struct More {
  struct In {
    Source source;
    uint32_t edge;
    int64_t lag;
  };
  int64_t earliest = 0;
  uint32_t starts_begin = 0, ends_begin = 0, ends_end = 0;  // ranges of Program::more_edges
};

struct Program {
  enum class Rows : uint8_t { kFast, kInTime };
  // FailedPrecondition on a cycle or when a lane may reorder. The starts of `watched` count as
  // read. Rows in time: what reads an instant stands close behind it, for those who keep few.
  static absl::StatusOr<Program> Compile(const Graph& graph, std::span<const TaskId> watched = {},
                                         Rows rows = Rows::kFast);

  size_t tasks = 0, lanes = 0;
  std::vector<Row> rows;
  std::vector<Into> into;                     // in row order
  std::vector<std::array<uint32_t, 3>> edge;  // of Into::source, into Graph::edges(); 0 if none
  std::vector<More> more;                     // in row order
  std::vector<More::In> more_edges;
};

// Evaluates with the numbers of `graph` (first form) or those given, indexed by TaskId (second
// form, lags as compiled; third form, lags of `edges`). `start` and `end` hold tasks + 1 entries.
void Evaluate(const Program& p, const Graph& graph, std::span<Instant> start,
              std::span<Instant> end);
void Evaluate(const Program& p, std::span<const Duration> duration, std::span<const Duration> gap,
              std::span<Instant> start, std::span<Instant> end);
void Evaluate(const Program& p, std::span<const Duration> duration, std::span<const Duration> gap,
              std::span<const Edge> edges, std::span<Instant> start, std::span<Instant> end);
// A graph that is played no second time, without a program, which takes longer than two replays.
// False where some tasks wait for themselves. `start` and `end` hold an entry for each task.
// REQUIRES: lanes of fixed order.
bool EvaluateOnce(const Graph& graph, std::span<Instant> start, std::span<Instant> end);
// Tells `steps` all tasks, too.
bool EvaluateOnce(const Graph& graph, std::span<Instant> start, std::span<Instant> end,
                  TasksOfSteps& steps);
// The same with these numbers, by TaskId, and the lags of `edges`: those of the graph.
bool EvaluateOnce(const Graph& graph, std::span<const Duration> duration,
                  std::span<const Duration> gap, std::span<const Edge> edges,
                  std::span<Instant> start, std::span<Instant> end);

}  // namespace daydream
