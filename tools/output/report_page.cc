#include "tools/output/report_page.h"

#include "report/export/side.h"
#include "report/html/page.h"
#include "report/html/roofline_block.h"
#include "report/html/timeline_block.h"
#include "report/text/json_writer.h"
#include "simulator/simulate.h"
#include "tools/input/scenarios.h"
#include "tools/output/score.h"
#include "tools/output/summary_json.h"
#include "tools/shell_word.h"
#include "tools/version.h"

namespace daydream {
namespace {

using Scenario = std::vector<Application>;
using Blocks = std::vector<JsonBlock>;

// One step by every group, as `summary --by GROUP --format json` has it.
void AddTables(const Graph& graph, const Timeline& timeline, const std::vector<Finding>& findings,
               bool after, Blocks& blocks) {
  constexpr std::string_view kIds[] = {"summary-class", "summary-op", "summary-kernel",
                                       "summary-layer", "summary-phase"};
  constexpr std::string_view kAfterIds[] = {"after-class", "after-op", "after-kernel",
                                            "after-layer", "after-phase"};
  const MemoryProfile memory = ProfileMemory(graph);
  Summary step;
  for (size_t by = 0; by < std::size(kIds); ++by) {
    step = Summarize(graph, timeline, static_cast<GroupBy>(by));
    blocks.push_back({after ? kAfterIds[by] : kIds[by],
                      SummaryJson(step, memory, static_cast<GroupBy>(by), findings)});
  }
  blocks.push_back({after ? "after-host" : "summary-host",
                    HostSummaryJson(HostTable(graph, timeline), step, findings)});
}

// Tables, roofline and timelines of the step as recorded and after `scenario`, when that could be
// predicted.
absl::Status AddTimelines(uint64_t most, const Inputs& in, const Prediction& main,
                          const Scenario& scenario, Blocks& blocks) {
  DD_ASSIGN_OR_RETURN(const Timeline before, Simulate(in.built.graph, {.blockers = true}));
  std::vector<Side> sides = {
      {"before: replayed", "simulated, not measured", &in.built.graph, &before}};
  AddTables(in.built.graph, before, in.findings, false, blocks);
  Played after;
  if (!scenario.empty() && main.error.ok()) {
    DD_ASSIGN_OR_RETURN(after, Play(in.built.graph, scenario));
    sides.push_back({fmt::format("after: {}", main.name), "predicted, not measured", &after.graph,
                     &after.timeline});
    AddTables(after.graph, after.timeline, {}, true, blocks);
  }
  blocks.push_back({"roofline", RooflineJson(in.built.graph)});
  blocks.push_back({"timeline", TimelineJson(sides, most)});
  return absl::OkStatus();
}

// What was asked, by what program.
std::string AboutJson(const Command& asked, const Args& args, std::string_view headline,
                      std::string_view title) {
  std::string command = fmt::format("daydream {} {}", asked.name, ShellWord(args.positional()[0]));
  auto add = [&](const Flag& flag) {
    for (std::string_view left_out : {"--output", "--force-overwrite", "--no-open"}) {
      if (flag.name == left_out) return;
    }
    if (!args.Has(flag.name)) return;
    if (flag.value.empty()) command += fmt::format(" {}", flag.name);
    if (flag.value.empty()) return;
    for (const std::string& value : args.All(flag.name)) {
      command += fmt::format(" {} {}", flag.name, ShellWord(value));
    }
  };
  for (const Flag& flag : asked.flags) add(flag);
  for (const Flag& flag : ReadFlags()) add(flag);
  std::string version = ShortVersion();
  version.pop_back();
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.report/1").Key("title").String(title);
  json.Key("headline").String(headline).Key("command").String(command);
  json.Key("input").String(args.positional()[0]).Key("version").String(version).EndObject();
  return json.Take() + "\n";
}

WhatIfOptions PredictOptions(const WhatIfReport& report, Session& session) {
  return {.true_step = report.true_step,
          .jobs = session.jobs(),
          .progress = [&session](size_t done, size_t total) {
            session.Progress("predicting", static_cast<double>(done) / static_cast<double>(total));
          }};
}

std::string TitleOf(const Args& args, const WhatIfReport& report) {
  return args.Has("--title") ? std::string(args.Get("--title")) : report.file;
}

// What is said, and ended with, once the page is made.
absl::StatusOr<Exit> EndOf(const Inputs& in, const WhatIfReport& report, Session& session) {
  WarnAboutReplay(in.replay, session);
  DD_RETURN_IF_ERROR(in.replay.no_step);
  for (const Prediction& p : report.result.predictions) {
    if (!p.error.ok()) session.Error(p.error);
    if (!p.error.ok() || !p.left_out.empty()) return Exit::kCannotAnswer;
  }
  return Exit::kOk;
}

// Options that are worth a row, with the best set, as `advise --format json` has them.
absl::Status AddAdvice(const Args& args, const Inputs& in, Session& session, Blocks& blocks) {
  const Budget any;
  DD_ASSIGN_OR_RETURN(const Candidates candidates, FindCandidates(args, any, session));
  DD_ASSIGN_OR_RETURN(const AdviseReport report,
                      AdviseOn(args.positional()[0], in, candidates, any, false, session));
  blocks.push_back({"advise", AdviseJson(report)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReportPage> MakeReportPage(const Command& command, const Args& args,
                                          Session& session) {
  DD_ASSIGN_OR_RETURN(const double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  DD_ASSIGN_OR_RETURN(const uint64_t most, ParseCount("--max-slices", args.Get("--max-slices")));
  DD_ASSIGN_OR_RETURN(std::vector<Scenario> scenarios, ParseScenarios(args));
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(const Inputs in, LoadInputs(path, args, session));
  const bool failed = in.replay.worst().error > limit;
  if (failed) scenarios.clear();

  WhatIfReport report = ReportOf(in);
  DD_ASSIGN_OR_RETURN(report.result,
                      PredictAll(in.built, in.replay, scenarios, PredictOptions(report, session)));
  const Prediction& main = report.result.predictions[report.result.main];
  const Scenario scenario = scenarios.empty() ? Scenario() : scenarios.back();
  if (args.Has("--measured") && !failed && main.error.ok()) {
    DD_ASSIGN_OR_RETURN(report.score, ScoreAgainst(std::string(args.Get("--measured")), args,
                                                   session, in, scenario, main));
  }
  const std::string title = TitleOf(args, report);
  Blocks blocks = {{"about", AboutJson(command, args, report.headline, title)},
                   {"whatif", WhatIfJson(report)}};
  DD_RETURN_IF_ERROR(AddTimelines(most, in, main, scenario, blocks));
  if (scenarios.empty() && !failed && in.replay.no_step.ok()) {
    DD_RETURN_IF_ERROR(AddAdvice(args, in, session, blocks));
  }
  ReportPage page{.html = HtmlPage(title, blocks)};
  page.exit = failed ? ReplayFailed(in.replay, limit, path) : EndOf(in, report, session);
  return page;
}

absl::StatusOr<std::string> MakeAdvicePage(const Command& command, const Args& args,
                                           const Inputs& in, const AdviseReport& advice,
                                           Session& session) {
  WhatIfReport report = ReportOf(in);
  DD_ASSIGN_OR_RETURN(report.result,
                      PredictAll(in.built, in.replay, {}, PredictOptions(report, session)));
  const std::string title = TitleOf(args, report);
  Blocks blocks = {{"about", AboutJson(command, args, report.headline, title)},
                   {"whatif", WhatIfJson(report)}};
  DD_ASSIGN_OR_RETURN(const uint64_t most, ParseCount("--max-slices", kMaxSlicesFlag.fallback));
  DD_RETURN_IF_ERROR(AddTimelines(most, in, report.result.predictions[0], {}, blocks));
  blocks.push_back({"advise", AdviseJson(advice)});
  return HtmlPage(title, blocks);
}

}  // namespace daydream
