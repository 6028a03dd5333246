// Timelines as Chrome trace JSON: opens in chrome://tracing, Perfetto and most other viewers.
#pragma once

#include <span>
#include <string>

#include "report/export/side.h"
#include "report/export/task_progress.h"

namespace daydream {

// One process per side, one thread per lane, one complete event ("ph": "X") per task that takes
// time, a flow from every launch call to its GPU work, and a critical path of its own.
// Times are microseconds with three decimals, that is, whole nanoseconds.
// "" once `hear` has said that no more is wanted.
std::string ChromeTrace(std::span<const Side> sides, const TasksWritten& hear = {});

}  // namespace daydream
