// The file of --learn and --learned: report/predict/learned.h on disk.
#pragma once

#include <string>
#include <vector>

#include "report/predict/learned.h"

namespace daydream {

// E0110 when the file is not there, cannot be read, is larger than 16 MB or holds a bad line.
absl::StatusOr<std::vector<LearnedRow>> ReadLearned(const std::string& path);

// Appends one row under an exclusive lock, so that several processes may learn at the same time;
// creates the file. E0110 when it holds anything that ReadLearned() would refuse.
absl::Status AppendLearned(const std::string& path, const LearnedRow& row);

}  // namespace daydream
