// What the copies of a trace show of the link between host and GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace daydream {

// Copies below this size say nothing about the rate of the link.
inline constexpr uint64_t kLargeCopy = 1 << 20;

// A copy takes this long however small it is, as the shortest kernels do.
inline constexpr Duration kCopyLatency = Duration::Us(2);

enum CopyWay : uint8_t { kToDevice, kToHost };
// Which way a copy between host and GPU goes; nothing for others.
std::optional<CopyWay> WayOf(const CopyDetail& copy);

double CopyRate(uint64_t bytes, Duration d);  // bytes per second; 0 for no time

// What copies can get of the link between the host and the GPU of this task: 78 % of what the GPU's
// data sheet rates it at. 0 where the GPU is not known.
double UsableLinkRate(const Graph& graph, TaskId t);

// Median rate of large pinned copies, by CopyWay; 0 without any. O(tasks).
std::array<double, 2> PinnedRates(const Graph& graph);

// Share of the steps' time in which copies of each way are on the link. O(tasks).
std::array<double, 2> LinkShares(const Graph& graph);

}  // namespace daydream
