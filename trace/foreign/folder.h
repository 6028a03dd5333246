// Which files of a folder are traces.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace daydream {

// The traces that a folder holds: its .ddtrace files, or else those of the PyTorch profiler.
// E0430 when there are none.
absl::StatusOr<std::vector<std::string>> TracesOfFolder(const std::string& folder);

}  // namespace daydream
