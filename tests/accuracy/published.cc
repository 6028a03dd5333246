#include "tests/accuracy/published.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "report/what_if.h"
#include "trace/importer.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) {
    // A comma inside of brackets belongs to a scenario.
    bool open = !fields.empty() && fields.back().find('(') != std::string::npos &&
                fields.back().find(')') == std::string::npos;
    if (open)
      fields.back() += ',' + field;
    else
      fields.push_back(field);
  }
  return fields;
}

// Under 5 % is what two recordings of the same program differ by.
std::string_view SizeClass(double speedup) {
  const double change = speedup >= 1 ? speedup - 1 : 1 / std::max(speedup, 1e-9) - 1;
  const bool faster = speedup >= 1;
  if (change < 0.05) return "none";
  if (change < 0.25) return faster ? "small gain" : "small loss";
  if (change < 0.75) return faster ? "medium gain" : "medium loss";
  return faster ? "large gain" : "large loss";
}

absl::StatusOr<double> PredictedSpeedup(const fs::path& trace_path, const std::string& scenario) {
  DD_ASSIGN_OR_RETURN(std::shared_ptr<const Trace> trace, ImportFile(trace_path.string()));
  DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildGraph(trace));
  DD_ASSIGN_OR_RETURN(ReplayCheck replay, CheckReplay(built, nullptr));
  DD_ASSIGN_OR_RETURN(std::vector<Application> parsed, ParseScenario(scenario));
  std::vector<std::vector<Application>> scenarios = {parsed};
  DD_ASSIGN_OR_RETURN(WhatIf result,
                      PredictAll(built, replay, scenarios, {.alone = false, .intervals = false}));
  const Prediction& p = result.predictions[result.main];
  if (!p.error.ok()) return p.error;
  return p.speedup;
}

std::string RowOf(const std::string& line, const fs::path& traces) {
  const std::vector<std::string> f = Fields(line);
  if (f.size() < 7) return fmt::format("| {} | | | | | cannot be read |\n", line);
  const double before = std::stod(f[3]), after = std::stod(f[4]);
  const double published = f[5] == "ms" ? before / after : after / before;
  const std::string head = fmt::format("| {} ({}) | {} | `{}` | {:.2f}x, {} |", f[0], f[6], f[1],
                                       f[2], published, SizeClass(published));
  absl::StatusOr<double> predicted = PredictedSpeedup(traces / f[1], f[2]);
  if (!predicted.ok()) {
    // Nothing to change is an answer, too: no effect.
    const Diagnostic d = DiagnosticOf(predicted.status());
    if (d.code != "E0601") return fmt::format("{} | {} |\n", head, d.what);
    const bool same = SizeClass(published) == "none";
    return fmt::format("{} not there, none: {} | {} |\n", head, d.why,
                       same ? "agrees" : "**differs**");
  }
  const std::string_view ours = SizeClass(*predicted), theirs = SizeClass(published);
  const bool direction = (*predicted > 1.05) == (published > 1.05) &&
                         (*predicted < 1 / 1.05) == (published < 1 / 1.05);
  return fmt::format("{} {:.2f}x, {} | {} |\n", head, *predicted, ours,
                     ours == theirs ? "agrees"
                     : direction    ? "direction agrees, **size differs**"
                                    : "**differs**");
}

}  // namespace

std::string PublishedSection(const fs::path& traces, const fs::path& csv) {
  std::string text =
      "\n## Published figures without traces\n\n"
      "Predicted from the trace at hand whose shape is closest: another program on another "
      "machine, so "
      "only\ndirection and size class can agree (none: under 5 %, small: under 25 %, medium: under "
      "75 %, "
      "large).\n\n"
      "| published | trace | scenario | published change | predicted change | |\n"
      "|---|---|---|---|---|---|\n";
  std::ifstream in(csv);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    text += RowOf(line, traces);
  }
  return text;
}

}  // namespace daydream
