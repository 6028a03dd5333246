// Transfers of collectives, re-timed: what a network decides of them, and not the waiting for other
// ranks that was recorded with it.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "costmodel/network/size_curve.h"
#include "graph/ranks/collectives.h"
#include "transforms/core/editor.h"

namespace daydream {

// What this trace says of transfers by their size, in all kinds of collectives together: the
// shortest transfer of each size, fitted. Of a single size, 20 us count as latency: what an empty
// message takes in a node (the middle of the built-in fabrics of one node).
SizeCurve TransfersBySize(const Graph& graph, const RankCollectives& collectives);

// Gives each collective the transfer that `time` says; waits stay. Returns how many changed.
// Collectives without a size are left alone and counted in a warning. O(tasks).
size_t RetimeTransfers(
    Editor& edit, const RankCollectives& collectives,
    const std::function<Duration(const RankCollective& c, Duration transfer)>& time);

// What a transform calls collectives of which a network decides otherwise. Slices follow one
// another closely: each takes the time of its bytes in a long message, and who waits for one waits
// for an empty message besides. Groups of one rank of each node share its NICs with the others.
inline constexpr std::string_view kSliceName = "slice of a gradient";
inline constexpr std::string_view kOneOfEachNode = "one rank of each node";

struct LongMessages {
  double ns_per_byte = 0;
  Duration latency;  // of an empty one
};
// `time` of so many bytes tells both.
absl::StatusOr<LongMessages> MeasureLongMessages(
    const std::function<absl::StatusOr<Duration>(double bytes)>& time);
// Is this a slice?
bool IsSlice(const Graph& graph, TaskId t);

// Collectives take their transfers: no rank waits for another, as in the own cycle of a rank that
// is played together with others. Those that meet peers take what FindMeetings() says of their
// class, where a few of a kind are enough; rule N2 needs four. O(tasks log tasks).
void DropWaits(Graph& graph);

// The collectives of the graph being edited.
RankCollectives CollectivesOf(const Graph& graph);

}  // namespace daydream
