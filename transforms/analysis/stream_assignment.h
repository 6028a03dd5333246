// Which stream each piece of work runs on: Nimble's assignment (NeurIPS'20, section 4.2). It keeps
// apart whatever could run at the same time, and of all assignments that do it needs the fewest
// synchronizations.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace daydream {

// Work by number; an edge (a, b) says that b needs a, and a < b.
struct WorkDag {
  uint32_t size = 0;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
};

struct StreamAssignment {
  // By work: its chain. The work of a chain depends on each other, in order.
  std::vector<uint32_t> chain;
  uint32_t chains = 0;
  // What of the edges follows from no others, sorted. Those between two chains are
  // synchronizations.
  std::vector<std::pair<uint32_t, uint32_t>> needed;
};

// Transitive reduction, then a maximum matching between work as a source and work as a target of
// its edges: matched edges make chains. O(size^2 + size * edges).
StreamAssignment AssignChains(const WorkDag& dag);

// Streams for the chains, at most `streams` (0: no limit), by work; chain of work 0 on stream 0. A
// chain that can only begin when another one has ended follows it on its stream; with too few
// streams chains join the one with the least `cost` so far. Work of one stream runs in the order of
// its numbers.
std::vector<uint32_t> FoldChains(const WorkDag& dag, const StreamAssignment& assignment,
                                 std::span<const int64_t> cost, uint32_t streams);

}  // namespace daydream
