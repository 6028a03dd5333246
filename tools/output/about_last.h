// What is asked about the last scenario of `whatif` beside its prediction: --by, --timeline,
// --measured and --learn.
#pragma once

#include <functional>
#include <vector>

#include "tools/input/inputs.h"
#include "tools/output/whatif_output.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// Answers that into `report` and into the files of these flags; nothing where `last` could not be
// predicted. Where it is not done, or once `stopped`, which is asked before each of them, is true,
// report.missing has the flags that are left, and their files are as they were.
absl::Status AnswerAboutLast(const Args& args, Session& session, const Inputs& in,
                             const std::vector<Application>& last,
                             const std::function<bool()>& stopped, WhatIfReport& report);

}  // namespace daydream
