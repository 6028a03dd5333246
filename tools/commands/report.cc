#include "report/export/side.h"
#include "report/html/page.h"
#include "report/html/roofline_block.h"
#include "report/html/timeline_block.h"
#include "report/text/json_writer.h"
#include "simulator/simulate.h"
#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/input/scenarios.h"
#include "tools/output/advise_output.h"
#include "tools/output/score.h"
#include "tools/output/summary_json.h"
#include "tools/output/whatif_output.h"
#include "tools/shell_word.h"
#include "tools/version.h"

namespace daydream {
namespace {

constexpr Flag kFlags[] = {
    {.name = "--opt",
     .value = "SPEC",
     .help = "optimizations to apply together, 'amp,fuse'; without one, those that advise finds",
     .repeats = true},
    kOptFileFlag,
    kSetFlag,
    {.name = "--measured",
     .value = "TRACE",
     .help = "score the last scenario against a trace recorded after the change"},
    {.name = "--title", .value = "TEXT", .help = "title of the page; default: the trace"},
    {.name = "--max-slices",
     .value = "N",
     .help = "slices of the timelines; beyond it short neighbours become one",
     .fallback = "500000"},
    {.name = "--output",
     .letter = 'o',
     .value = "FILE",
     .help = "the page to write, out.html; - = stdout"},
    {.name = "--force-overwrite", .letter = 'f', .help = "replace the file if it exists"},
    kTrueStepFlag,
    kSamplesFlag,
    kMaxReplayErrorFlag,
};

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
absl::Status AddTimelines(const Args& args, const Inputs& in, const Prediction& main,
                          const Scenario& scenario, Blocks& blocks) {
  DD_ASSIGN_OR_RETURN(uint64_t most, ParseCount("--max-slices", args.Get("--max-slices")));
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

// Options that are worth a row, with the best set, as `advise --format json` has them.
absl::Status AddAdvice(const Args& args, const Inputs& in, Session& session, Blocks& blocks) {
  const Budget any;
  DD_ASSIGN_OR_RETURN(const Candidates candidates, FindCandidates(args, any, session));
  DD_ASSIGN_OR_RETURN(const AdviseReport report,
                      AdviseOn(args.positional()[0], in, candidates, any, false, session));
  blocks.push_back({"advise", AdviseJson(report)});
  return absl::OkStatus();
}

// What was asked, by what program.
std::string AboutJson(const Args& args, const WhatIfReport& report, std::string_view title) {
  std::string command = "daydream report " + ShellWord(args.positional()[0]);
  auto add = [&](const Flag& flag) {
    if (!args.Has(flag.name) || flag.name == "--output" || flag.name == "--force-overwrite") return;
    if (flag.value.empty()) command += fmt::format(" {}", flag.name);
    if (flag.value.empty()) return;
    for (const std::string& value : args.All(flag.name)) {
      command += fmt::format(" {} {}", flag.name, ShellWord(value));
    }
  };
  for (const Flag& flag : kFlags) add(flag);
  for (const Flag& flag : ReadFlags()) add(flag);
  std::string version = ShortVersion();
  version.pop_back();
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.report/1").Key("title").String(title);
  json.Key("headline").String(report.headline).Key("command").String(command);
  json.Key("input").String(args.positional()[0]).Key("version").String(version).EndObject();
  return json.Take() + "\n";
}

absl::StatusOr<Exit> Run(const Args& args, Session& session) {
  if (!args.Has("--output")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "report needs the name of the page to write",
                       .fix = "-o report.html"});
  }
  DD_ASSIGN_OR_RETURN(const double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  DD_ASSIGN_OR_RETURN(std::vector<Scenario> scenarios, ParseScenarios(args));
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(const Inputs in, LoadInputs(path, args, session));
  const bool failed = in.replay.worst().error > limit;
  if (failed) scenarios.clear();

  WhatIfReport report = ReportOf(in);
  const WhatIfOptions options{
      .true_step = report.true_step,
      .jobs = session.jobs(),
      .progress = [&](size_t done, size_t total) {
        session.Progress("predicting", static_cast<double>(done) / static_cast<double>(total));
      }};
  DD_ASSIGN_OR_RETURN(report.result, PredictAll(in.built, in.replay, scenarios, options));
  const Prediction& main = report.result.predictions[report.result.main];
  const Scenario scenario = scenarios.empty() ? Scenario() : scenarios.back();
  if (args.Has("--measured") && !failed && main.error.ok()) {
    DD_ASSIGN_OR_RETURN(report.score, ScoreAgainst(std::string(args.Get("--measured")), args,
                                                   session, in, scenario, main));
  }

  const std::string title = args.Has("--title") ? std::string(args.Get("--title")) : report.file;
  Blocks blocks = {{"about", AboutJson(args, report, title)}, {"whatif", WhatIfJson(report)}};
  DD_RETURN_IF_ERROR(AddTimelines(args, in, main, scenario, blocks));
  if (scenarios.empty() && !failed && in.replay.no_step.ok()) {
    DD_RETURN_IF_ERROR(AddAdvice(args, in, session, blocks));
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, HtmlPage(title, blocks)));
  if (failed) return ReplayFailed(in.replay, limit, path);
  WarnAboutReplay(in.replay, session);
  DD_RETURN_IF_ERROR(in.replay.no_step);
  for (const Prediction& p : report.result.predictions) {
    if (!p.error.ok()) session.Error(p.error);
    if (!p.error.ok() || !p.left_out.empty()) return Exit::kCannotAnswer;
  }
  return Exit::kOk;
}

}  // namespace

const Command kReportCommand = {
    .name = "report",
    .summary = "one HTML page to look at and to pass on",
    .usage = "TRACE [--opt SPEC]... -o FILE.html",
    .details =
        R"(The page opens in any browser, without a network: it is one file that loads nothing. It
holds what is wrong with the recording, predictions with their intervals, causes, the steps,
tables by layer, operator and kernel, the roofline, and timelines before and after. All
numbers stand in it as JSON, those of whatif, summary and advise. Names of the trace are in
it: kernels, operators, layers and files.

Without --opt the page shows what advise would try. Exit code 4, as of whatif: the replay is
too far off, or a part of a scenario finds nothing to change; the page is written all the
same.)",
    .examples =
        "daydream report run.ddtrace --opt amp,fuse -o report.html\n"
        "daydream report run.ddtrace -o report.html\n"
        "daydream report run.ddtrace --opt amp --measured with-amp.ddtrace -o report.html",
    .flags = kFlags,
    .takes = {.traces = true, .least = 1, .most = 1},
    .run = Run,
};

}  // namespace daydream
