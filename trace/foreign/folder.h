// Which files of a folder are traces.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace daydream {

struct FolderTraces {
  std::vector<std::string> files;     // sorted; never empty
  std::vector<std::string> not_read;  // their names are those of traces of another kind
};

// The traces that a folder holds, a rank each: its .ddtrace files. Where such a one has the name of
// another trace beside it, as `import` gives it, it stands for that one, and the others of that
// kind count, too. Without .ddtrace files those of the PyTorch profiler, or else of the next kind.
// Endings may be in capitals. E0430 when there are none.
absl::StatusOr<FolderTraces> FindTraces(const std::string& folder);
// The same, files only.
absl::StatusOr<std::vector<std::string>> TracesOfFolder(const std::string& folder);

// What `import` calls the trace that it makes of `file`: "run.pt.trace.json.gz" -> "run.ddtrace".
std::string NameOfImported(std::string file);

}  // namespace daydream
