// The result of `advise` as text, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "report/questions/advise.h"
#include "report/questions/findings.h"
#include "tools/budget.h"
#include "tools/input/candidates.h"
#include "tools/input/inputs.h"
#include "tools/output/joint_output.h"
#include "tools/output/whatif_output.h"
#include "tools/running/interrupt.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

struct AdviseReport {
  std::string path;      // of the trace, as it was given
  bool folders = true;   // files are named with them; not on pages, which are passed on
  std::string headline;  // "gpt2.ddtrace, 8 steps, NVIDIA A100"
  const Trace* trace = nullptr;
  const BuildReport* build = nullptr;
  Advised advised;
  const JointReport* ranks = nullptr;    // of several ranks, of which `trace` is the first
  std::vector<Finding> findings;         // about the recording, worst first
  std::vector<std::string> open;         // options that need a value that only the user knows
  std::vector<std::string> over_budget;  // options that take more than --budget
  bool per_example = false;  // times are for as many examples as a recorded step handles
  size_t details = 1;        // options that are shown with how to try them
};

// Tries `candidates` over `in`, which has to outlive the result. `per_example` is also set when one
// of them changes how many examples a step handles. `explained`: AdviseOptions::explained. `note`:
// counts what is tried, and may end it.
absl::StatusOr<AdviseReport> AdviseOn(const std::string& path, const Inputs& in,
                                      const Candidates& candidates, const Budget& budget,
                                      bool per_example, Session& session,
                                      size_t explained = AdviseOptions::kAllRows,
                                      InterruptNote* note = nullptr);

// The same on all ranks, with what only several can be asked (OptionsOfRanks()). `ranks` has to
// outlive the result.
absl::StatusOr<AdviseReport> AdviseOnRanks(const std::string& path, const JointReport& ranks,
                                           const Candidates& candidates, const Budget& budget,
                                           Session& session, InterruptNote* note = nullptr);

// What is missing where it was told to stop: "21 of 33 options are not tried, ...".
std::string MissingOf(const Advised& a);
// Warns of that; what the command ends with.
Exit EndOf(const Advised& a, Session& session);

std::string AdviseText(const AdviseReport& report, const Session& session);
std::string AdviseMarkdown(const AdviseReport& report, const Session& session);
std::string AdviseJson(const AdviseReport& report);
// Tidy: one row per option and metric, times in ns.
std::string AdviseCsv(const AdviseReport& report);

// How to try it in the program of this trace.
std::string HowOf(const Advice& advice, const Trace* trace);
// The command that scores `scenario` against a trace that was recorded after the change; of ranks,
// that says what they take then.
std::string CheckCommand(const AdviseReport& report, std::span<const Application> scenario);

}  // namespace daydream
