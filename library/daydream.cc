#include "library/daydream.h"

#include <utility>

#include "trace/importer.h"
#include "trace/part/part.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

absl::StatusOr<Run> Load(const std::string& path) {
  Run run;
  DD_ASSIGN_OR_RETURN(run.trace, ImportFile(path));
  run.trace = StandingForAll(std::move(run.trace));
  DD_ASSIGN_OR_RETURN(run.built, BuildGraph(run.trace));
  auto typical = BuildGraph(run.trace, {.lags = Lags::kTypical});
  DD_ASSIGN_OR_RETURN(run.replay, CheckReplay(run.built, typical.ok() ? &*typical : nullptr));
  DD_ASSIGN_OR_RETURN(run.replay.unrecorded, LeaveOutRecording(run.built.graph));
  return run;
}

absl::StatusOr<WhatIf> Ask(const Run& run, const std::vector<std::string>& scenarios,
                           const WhatIfOptions& options) {
  std::vector<std::vector<Application>> applications;
  for (const std::string& scenario : scenarios) {
    DD_ASSIGN_OR_RETURN(auto parsed, ParseScenario(scenario));
    applications.push_back(std::move(parsed));
  }
  return PredictAll(run.built, run.replay, applications, options);
}

}  // namespace daydream
