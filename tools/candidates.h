// The optimizations that `advise` tries without being told which.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/flags.h"
#include "tools/session.h"
#include "transforms/option_files.h"

namespace daydream {

struct Candidates {
  // What can be tried for real: those with advice, with their default parameters, then the files
  // of --opt-file and of DAYDREAM_OPTS_PATH. In the order in which they stand in a scenario.
  std::vector<Application> options;
  std::vector<Application> limits;
  // Options that need a value that only the user knows: "batch(n=...)".
  std::vector<std::string> open;
};

// Reads --opt-file and --exclude. E0102 when --exclude names nothing.
absl::StatusOr<Candidates> FindCandidates(const Args& args, Session& session);

}  // namespace daydream
