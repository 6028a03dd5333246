// The graphs of several ranks as one, whose waits are computed.
//
// A member of a row of matched collectives becomes two tasks on its lane: the Arrival, of no
// length, and the transfer. The row becomes a Meeting: one task of no length on a lane of its
// communicator. Two edges a member: Arrival -> Meeting -> transfer. What came before the kernel
// comes before the Arrival, what came after it after the transfer; between the two the member
// waits.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/ranks/meetings.h"

namespace daydream {

// How a Meeting's transfer follows from what was recorded.
enum class TransferFrom : uint8_t {
  kRow,    // of that row
  kClass,  // one number for all of its kind and size: the honest test, and what can be scaled
};

// The transfer of each row. O(rows).
std::vector<Duration> TransfersOf(const Meetings& meetings, TransferFrom from);

struct JointGraph {
  // What was made of one rank: [task, task_end) of tasks(), [edge, edge_end) of edges(), and its
  // origin. Nothing in there depends on what lies elsewhere; edges of Meetings stand behind all.
  struct Part {
    size_t task = 0, task_end = 0, edge = 0, edge_end = 0;
  };
  Graph graph;
  // By rank, by TaskId of its own graph: its task here. Work of a host in a row is one task when no
  // edge begins or ends in it.
  std::vector<std::vector<TaskId>> task;
  // The same for the Arrivals of matched collectives; None for other tasks.
  std::vector<std::vector<TaskId>> arrival;
  // By rank, and for Ghosts behind them: a task that lasts until the rank begins. Its duration is
  // the clock shift of the rank; no task of the rank starts before it ends.
  std::vector<TaskId> origin;
  std::vector<Part> part;          // by rank
  std::vector<TaskId> meeting;     // by row; None where less than two take part
  std::vector<Duration> transfer;  // by row
};

// `graphs`, by rank: as built, or edited since; collectives are found by their TaskId. A row whose
// collective was removed on a rank goes on without that rank. `shift`: when each rank begins,
// against the first to begin. O(tasks + edges).
JointGraph JoinGraphs(std::span<const Graph* const> graphs, std::span<const RankCollectives> ranks,
                      const MatchedRanks& matched, const Meetings& meetings,
                      std::span<const Duration> transfer, std::span<const Duration> shift);

// One rank of it that waits for nobody. O(tasks + edges of the rank).
struct RankAlone {
  Graph graph;               // without names
  std::vector<TaskId> task;  // by TaskId of the rank's own graph; None as in JointGraph::task
};
RankAlone TakeAlone(const JointGraph& joint, size_t rank);

}  // namespace daydream
