// Small graphs as text, for tests and for people (docs/graph-text.md has the grammar). Lines of one
// lane run in order; `after` adds the other edges:
//
//   lane cpu0   thread
//   lane gpu0.7 stream
//   t0 cpu0   call   5us gap 1us "cudaLaunchKernel"
//   t1 gpu0.7 kernel 40us "sgemm" after t0 launch +2us
//   t2 cpu0   wait   "cudaDeviceSynchronize" until t1 hostwait -3us
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// InvalidArgument with line and column on the first mistake.
absl::StatusOr<Graph> ParseGraph(std::string_view text);
// Inverse of ParseGraph: ParseGraph(FormatGraph(g)) is g, but for removed tasks and overlays.
std::string FormatGraph(const Graph& graph);

}  // namespace daydream
