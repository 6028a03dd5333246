// Runs the steps of an option file on a graph.
#pragma once

#include <string_view>
#include <vector>

#include "transforms/scenario/option_file.h"
#include "transforms/scenario/option_steps.h"

namespace daydream {

// See OptionFile::Apply.
absl::Status RunOptionFile(const OptionFile& file, const Params& params, Editor& edit,
                           std::vector<OptionMatch>* matches);

// What `needs:` may name: things that traces lack, and fields of tasks.
std::vector<std::string_view> OptionNeedWords();
// FailedPrecondition E0422 when `graph` lacks what the file needs.
absl::Status CheckNeeds(const OptionFile& file, const Graph& graph, ExpressionValues& values);

}  // namespace daydream
