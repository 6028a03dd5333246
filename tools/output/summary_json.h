// The result of `summary` as JSON.
#pragma once

#include <string>
#include <vector>

#include "report/host_table.h"
#include "report/questions/findings.h"
#include "report/summary.h"
#include "transforms/analysis/memory_profile.h"

namespace daydream {

// "daydream.summary/1": where the time of a step goes, by group of work. `replay`: how well the
// step is the recorded one; null: not told.
std::string SummaryJson(const Summary& s, const MemoryProfile& memory, GroupBy by,
                        const ReplayCheck* replay, const std::vector<Finding>& findings);
// The same of `--by host`; `step` is a summary of the same step by anything.
std::string HostSummaryJson(const std::vector<HostRow>& rows, const Summary& step,
                            const ReplayCheck* replay, const std::vector<Finding>& findings);

}  // namespace daydream
