// The optimizations that `advise` tries without being told which.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/budget.h"
#include "tools/flags.h"
#include "tools/session.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

struct Candidates {
  // What can be tried for real: those with advice, with their default parameters, then the files
  // of --opt-file and of DAYDREAM_OPTS_PATH. In the order in which they stand in a scenario.
  std::vector<Application> options;
  std::vector<Application> limits;
  // Options that need a value that only the user knows: "batch(n=...)".
  std::vector<std::string> open;
  std::vector<std::string> over_budget;  // those that are left out for it: "gist (~200 lines)"
};

// Reads --opt, --opt-file and --exclude. E0102 when --exclude names nothing, E0104 when an --opt is
// more than one optimization.
absl::StatusOr<Candidates> FindCandidates(const Args& args, const Budget& budget, Session& session);

}  // namespace daydream
