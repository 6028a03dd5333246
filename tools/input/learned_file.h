// The file of --learn and --learned: report/predict/learned.h on disk.
#pragma once

#include <string>
#include <vector>

#include "report/predict/learned.h"
#include "tools/session.h"

namespace daydream {

// E0110 when the file is not there, cannot be read, is larger than 16 MB or holds a bad line. A
// last line that was cut off when its writer died is left out, with a warning.
absl::StatusOr<std::vector<LearnedRow>> ReadLearned(const std::string& path, Session& session);

// Appends one row under an exclusive lock, so that several processes may learn at the same time;
// creates the file, and cuts a half-written last line off. E0110 when it holds anything else that
// ReadLearned() would refuse.
absl::Status AppendLearned(const std::string& path, const LearnedRow& row, Session& session);

}  // namespace daydream
