// --convert: reports of Nsight Systems, exported by its own program.
#pragma once

#include <string>

#include "base/status.h"
#include "tools/running/temporary_folder.h"
#include "tools/session.h"

namespace daydream {

// Whether the file begins like a report. False when it cannot be read.
bool IsReport(const std::string& path);

// Runs `nsys export` on the report and gives the SQLite file in `folder`. Says so before. E0231:
// there is no nsys on the PATH, or it failed.
absl::StatusOr<std::string> ExportReport(const std::string& report, const TemporaryFolder& folder,
                                         Session& session);

}  // namespace daydream
