// Timelines in Perfetto's native protobuf, for ui.perfetto.dev and trace_processor.
#pragma once

#include <span>
#include <string>

#include "report/export/side.h"
#include "report/export/task_progress.h"

namespace daydream {

// One root track per side with its lanes below, in lane order, both sides from the same zero, a
// slice per task that takes time with its step, phase, layer and operator, an arrow from every
// launch call to its GPU work and from every event wait to what it waits for, the critical path of
// each side, and its counters (report/export/counters.h). Equal inputs give equal bytes.
// "" once `hear` has said that no more is wanted.
std::string PerfettoTrace(std::span<const Side> sides, const TasksWritten& hear = {});

}  // namespace daydream
