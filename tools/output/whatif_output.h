// The result of `whatif` as text, JSON and CSV.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/predict/misses.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/summary.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "tools/gate.h"
#include "tools/output/not_done.h"
#include "tools/session.h"

namespace daydream {

// What a real run of the changed program took, for --measured.
struct Score {
  std::string file;
  Duration measured;
  std::string headline;
  std::string device;        // name of the first GPU
  double error = 0;          // predicted / measured - 1
  bool inside = false;       // of the interval
  std::vector<Miss> misses;  // largest first
  std::string not_the_same;  // why it measures something else than was predicted; or empty
};

// One group before and after, for --by.
struct BreakdownRow {
  std::string name;
  Duration before, after;            // GPU work per step
  Duration path_before, path_after;  // on the critical path per step
};

struct WhatIfReport {
  std::string file;
  std::string headline;  // "gpt2.ddtrace, 8 steps, NVIDIA A100"
  const Trace* trace = nullptr;
  const BuildReport* build = nullptr;
  WhatIf result;
  std::vector<Finding> findings;      // about the recording, worst first
  std::vector<std::string> warnings;  // of the graph
  std::string by = "cause";
  std::vector<BreakdownRow> breakdown;  // for every `by` but cause
  std::optional<Score> score;
  const TrueStep* true_step = nullptr;  // what --true-step took off
  std::vector<Verdict> gates;           // every --fail-if, of the last scenario
  NotDone missing;                      // it was told to stop
};

std::string WhatIfText(const WhatIfReport& report, const Session& session);
std::string WhatIfMarkdown(const WhatIfReport& report, const Session& session);
std::string WhatIfJson(const WhatIfReport& report);
// Tidy: one row per scenario and metric, times in ns.
std::string WhatIfCsv(const WhatIfReport& report);

// Parts of that JSON, for other commands that predict: "trace" and "replay" with their keys, and
// one prediction as a value. One that failed has the same keys, with null or nothing in them.
void WriteTrace(const Trace& trace, std::string_view file, const BuildReport& build,
                JsonWriter& json);
void WriteReplay(const ReplayCheck& replay, JsonWriter& json);
// "step_ms", "median_ms" and "steps_ms" of the step that is asked about, the mean of `steps`: the
// same keys in every command. Without steps, as of ranks together, what is not known is null.
void WriteStep(Duration step, std::span<const Duration> steps, JsonWriter& json);
// "recording_cost": what was left out, and the step without it.
void WriteUnrecorded(const Unrecorded& unrecorded, JsonWriter& json);
void WritePrediction(const Prediction& p, JsonWriter& json);
// "gates"; nothing without any.
void WriteGates(std::span<const Verdict> gates, JsonWriter& json);

}  // namespace daydream
