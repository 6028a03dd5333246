// Another program on the same GPU: its tasks beside those of a graph, and kernels of both that take
// turns.
//
// A turn is a task on a lane of the GPU that runs one thing at a time, whatever is ready first. It
// begins with its kernel and lasts as long as the kernel keeps others away: all of it where
// programs are sliced by time, and the part of the GPU that it uses, times its duration, where
// they run side by side. So kernels that fill the GPU take turns, small ones overlap, and a program
// that is alone runs as recorded.
#pragma once

#include <span>
#include <vector>

#include "costmodel/sm_share.h"
#include "transforms/core/editor.h"

namespace daydream {

// Copies lanes, tasks and edges of `guest` into the edited graph, on the GPU of its own program.
// Returns the new id of every task of `guest`. Copies belong to step 0: they mark no step of the
// program that is looked at. Names of layers and scopes stay behind. REQUIRES: the graph has steps.
std::vector<TaskId> AddProgram(Editor& edit, const Graph& guest);

// E0812 when two graphs were recorded on GPUs that are known to differ.
absl::Status CheckSameGpu(const Graph& a, const Graph& b);

// The step with the median recorded period of those that were measured, and that period.
uint16_t TypicalStep(const Graph& graph);
Duration RecordedPeriod(const Graph& graph, uint16_t step);

enum class GpuPolicy : uint8_t {
  kTime,   // the driver's default: kernels of two processes never run at once
  kSpace,  // MPS: they do, as far as the GPU has room
};
struct Turns {
  size_t kernels = 0, by_launch = 0;
  Duration time, kept;  // of the kernels, and of their turns
};
Turns TakeTurns(Editor& edit, GpuPolicy policy, const ShareRules& rules);

}  // namespace daydream
