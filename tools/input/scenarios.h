// --opt, --opt-file and --set, as whatif and export take them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/flags.h"
#include "tools/session.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// One scenario per --opt with the values of --set filled in, then one for each --opt-file that no
// --opt names.
absl::StatusOr<std::vector<std::vector<Application>>> ParseScenarios(const Args& args);

// One scenario for each of `specs` instead of --opt, with the files of --opt-file and the values of
// --set.
absl::StatusOr<std::vector<std::vector<Application>>> ParseSpecs(
    const Args& args, std::span<const std::string> specs);

// Reads the files of DAYDREAM_OPTS_PATH into `files`; warns of those that cannot be read.
void LoadFolders(OptionFiles& files, Session& session);

// "3%", "3" -> 0.03. E0104 unless it is a number of percent, 0 or more.
absl::StatusOr<double> ParsePercent(std::string_view flag, std::string_view text);

}  // namespace daydream
