// Steps that we measured ourselves with and without a change (tests/data/h200), each predicted from
// the recording without it.
#pragma once

#include <filesystem>
#include <vector>

#include "tests/accuracy/judged.h"

namespace daydream {

// A row for each clean line of `folder`/measured.csv with a change, in the order of the file; a
// file that cannot be read is a row that says why. What recording cost is left out of the step
// before.
std::vector<JudgedRow> JudgeOwnRecordings(const std::filesystem::path& folder);

}  // namespace daydream
