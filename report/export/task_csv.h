// Every task of one or more timelines as CSV.
#pragma once

#include <span>
#include <string>

#include "report/export/side.h"

namespace daydream {

// Columns: side,task,lane,kind,name,step,counted,phase,layer,op,start_ns,end_ns,duration_ns,gap_ns,
// recorded_start_ns,bytes. Removed tasks are left out. One row a task, in TaskId order per side.
std::string TaskCsv(std::span<const Side> sides);

}  // namespace daydream
