// A prediction against a recording that was made after the change, for --measured.
#pragma once

#include <string>
#include <vector>

#include "tools/input/inputs.h"
#include "tools/output/whatif_output.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// What is known of the trace before anything is predicted; `in` has to outlive it.
WhatIfReport ReportOf(const Inputs& in);

// How far `p`, the prediction of `scenario` over `in`, is off the trace in `path`.
absl::StatusOr<Score> ScoreAgainst(const std::string& path, const Args& args, Session& session,
                                   const Inputs& in, const std::vector<Application>& scenario,
                                   const Prediction& p);

// "'NVIDIA A100'", for messages.
std::string Called(std::string_view device);

}  // namespace daydream
