// The page of `report` about what `sweep` or `scale` found.
#pragma once

#include <string>

#include "base/status.h"
#include "tools/command.h"

namespace daydream {

// Whether `path` begins as the JSON of `sweep` or `scale` does.
bool IsSavedSweep(const std::string& path);

// That file as the block "sweep" or "scale" of a page. E0215 for a file that is cut, too large, or
// has no rows.
absl::StatusOr<std::string> MakeSweepPage(const Command& command, const Args& args);

}  // namespace daydream
