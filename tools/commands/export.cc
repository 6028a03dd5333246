#include "report/export/chakra_trace.h"
#include "report/export/chrome_trace.h"
#include "report/export/dot.h"
#include "report/export/folded.h"
#include "report/export/perfetto_trace.h"
#include "report/export/task_csv.h"
#include "report/export/waterfall_svg.h"
#include "report/predict/unrecorded.h"
#include "report/predict/what_if.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/input/scenarios.h"
#include "trace/ddtrace/writer.h"

namespace daydream {
namespace {

constexpr std::string_view kKinds[] = {"chrome", "perfetto", "csv",     "folded",
                                       "dot",    "svg",      "ddtrace", "chakra"};
constexpr std::string_view kThemes[] = {"light", "dark"};
constexpr Flag kExportFlags[] = {
    {.name = "--to",
     .value = "KIND",
     .help =
         "chrome, perfetto, csv, folded, dot, svg, ddtrace or chakra; default: by the name of the "
         "output",
     .choices = kKinds},
    {.name = "--folded", .help = "the same as --to folded: stacks for flame graphs, in ns a step"},
    {.name = "--opt", .value = "SPEC", .help = "export before and after these optimizations"},
    kOptFileFlag,
    kSetFlag,
    kKeepRecordingCostFlag,
    {.name = "--output",
     .letter = 'o',
     .value = "FILE",
     .help = "the file to write; - = stdout",
     .fallback = "-"},
    {.name = "--force-overwrite", .letter = 'f', .help = "replace the file if it exists"},
    {.name = "--top", .value = "N", .help = "dot: tasks to draw", .fallback = "500"},
    {.name = "--theme",
     .value = "THEME",
     .help = "svg: colours for light or for dark pages",
     .fallback = "light",
     .choices = kThemes},
};

std::string KindOf(const Args& args) {
  if (args.Has("--folded")) return "folded";
  if (args.Has("--to")) return std::string(args.Get("--to"));
  std::string_view path = args.Get("--output");
  if (path.ends_with(".pftrace")) return "perfetto";
  if (path.ends_with(".json")) return "chrome";
  if (path.ends_with(".et")) return "chakra";
  for (std::string_view kind : {"csv", "folded", "dot", "svg", "ddtrace"}) {
    if (path.ends_with("." + std::string(kind))) return std::string(kind);
  }
  return "";
}

absl::StatusOr<std::string> ExportDot(const Graph& graph, const Args& args) {
  DotOptions options;
  DD_ASSIGN_OR_RETURN(options.max_tasks, ParseCount("--top", args.Get("--top")));
  std::vector<size_t> counted = CountedSteps(graph);
  options.step = counted.empty() ? 0 : static_cast<uint16_t>(counted.front());
  return Dot(graph, options);
}

std::string ExportChakra(const Graph& graph, const Timeline& timeline, Session& session) {
  ChakraExport out = ChakraTrace(graph, timeline);
  session.Note(fmt::format("{} for {}; played by its dependencies it takes {} of {}",
                           Plural(out.nodes, "node"), Plural(out.tasks, "task"),
                           FormatTime(out.played), FormatTime(timeline.makespan)));
  if (out.dropped > 0) {
    session.Note(fmt::format("{} left out: work that takes no time would wait for itself",
                             Plural(out.dropped, "edge")));
  }
  if (out.unnamed > 0) {
    session.Note(fmt::format("{} written as plain work: kind, bytes or peers were not recorded",
                             Plural(out.unnamed, "collective")));
  }
  return std::move(out.bytes);
}

// The last scenario, as `whatif` predicts it.
absl::StatusOr<std::string> ExportSvg(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(const auto scenarios, ParseScenarios(args));
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(const Inputs in, LoadInputs(path, args, session));
  DD_ASSIGN_OR_RETURN(const double limit, ParsePercent("", kMaxReplayErrorFlag.fallback));
  if (in.replay.worst().error > limit) return ReplayFailed(in.replay, limit, path);
  WarnAboutReplay(in.replay, session);
  const WhatIfOptions options{
      .alone = false, .jobs = session.jobs(), .progress = [&](size_t done, size_t total) {
        session.Progress("predicting", done, total);
      }};
  DD_ASSIGN_OR_RETURN(const WhatIf result, PredictAll(in.built, in.replay, scenarios, options));
  DD_RETURN_IF_ERROR(in.replay.no_step);
  const Prediction& main = result.predictions[result.main];
  DD_RETURN_IF_ERROR(main.error);
  Waterfall picture{.name = main.name,
                    .before = result.predictions[0].step,
                    .after = main.step,
                    .low = main.low,
                    .high = main.high,
                    .bound = main.bound,
                    .causes = {}};
  for (const CauseShare& c : main.causes) picture.causes.push_back({c.what, c.delta});
  return WaterfallSvg(picture, args.Get("--theme") == "dark" ? Theme::kDark : Theme::kLight);
}

absl::StatusOr<std::string> Export(const std::string& kind, const Args& args, Session& session) {
  if (kind == "svg") return ExportSvg(args, session);
  DD_ASSIGN_OR_RETURN(auto scenarios, ParseScenarios(args));
  DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(args.positional()[0], args, session));
  if (kind == "ddtrace") {
    session.Progress("packing the trace");
    return SerializeDdtrace(*trace);
  }
  session.Progress("building the graph");
  DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildFor(trace, args));
  session.Progress("playing the steps");
  if (!args.Has("--keep-recording-cost")) {
    DD_RETURN_IF_ERROR(LeaveOutRecording(built.graph).status());
  }
  Played after;
  if (!scenarios.empty()) {
    DD_ASSIGN_OR_RETURN(after, Play(built.graph, scenarios[0]));
  }
  if (kind == "dot") return ExportDot(scenarios.empty() ? built.graph : after.graph, args);
  DD_ASSIGN_OR_RETURN(Timeline before, Simulate(built.graph, {.blockers = true}));
  const std::string what = fmt::format("making the {} file", kind);
  session.Progress(what);
  if (kind == "folded") {
    return scenarios.empty() ? FoldedStacks(built.graph, before)
                             : FoldedStacks(after.graph, after.timeline);
  }
  if (kind == "chakra") {
    return scenarios.empty() ? ExportChakra(built.graph, before, session)
                             : ExportChakra(after.graph, after.timeline, session);
  }
  std::vector<Side> sides = {
      {"before: replayed", "simulated, not measured", &built.graph, &before}};
  if (!scenarios.empty()) {
    sides.push_back({fmt::format("after: {}", args.Get("--opt")), "predicted, not measured",
                     &after.graph, &after.timeline, true});
  }
  if (kind == "csv") return TaskCsv(sides);
  const auto hear = [&](uint64_t done, uint64_t total) {
    session.Progress(what, done, total);
    return true;
  };
  return kind == "chrome" ? ChromeTrace(sides, hear) : PerfettoTrace(sides, hear);
}

absl::StatusOr<Exit> RunExport(const Args& args, Session& session) {
  std::string kind = KindOf(args);
  if (args.Has("--folded") && args.Has("--to") && args.Get("--to") != "folded") {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = fmt::format("--folded and --to {} are two kinds", args.Get("--to")),
                       .fix = "keep one of them"});
  }
  if (kind.empty()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "export needs --to, or an output whose name says it",
                       .fix = fmt::format("--to {}", OrList(kKinds))});
  }
  if (kind == "ddtrace" && args.Has("--opt")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "a .ddtrace file holds what was measured, not a prediction",
                       .fix = "drop --opt, or --to perfetto"});
  }
  if (kind == "svg" && !args.Has("--opt") && !args.Has("--opt-file")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "the picture is of what a scenario changes",
                       .fix = "--opt amp,fuse"});
  }
  DD_ASSIGN_OR_RETURN(std::string bytes, Export(kind, args, session));
  DD_RETURN_IF_ERROR(session.WriteBytes(args, bytes));
  return Exit::kOk;
}

}  // namespace

const Command kExportCommand = {
    .name = "export",
    .summary = "the replayed timeline, or before and after, for other tools",
    .usage = "TRACE --to KIND [--opt SPEC] [-o FILE]",
    .details =
        R"(chrome and perfetto hold one group of lanes per side, launch arrows and the critical
path; perfetto also counters of each GPU: busy, exposed communication, launch queue, and
memory where allocations were recorded; csv one row per task; dot the tasks of one step for
Graphviz; folded one stack a line, with the nanoseconds of one step behind it, for flame
graphs: stacks that begin with CPU hold threads, ranges, operators and calls, those that
begin with GPU streams, phases, layers, operators and kernels; svg a picture of the causes,
from the recorded step to the predicted one; ddtrace the trace itself; chakra (.et) what
depends on what and for how long, for simulators of networks, of the one rank that --rank
says. dot, folded and chakra hold one side: with --opt that after the optimizations.)",
    .examples =
        R"(daydream export run.ddtrace --opt amp,fuse -o both.pftrace
daydream export run.ddtrace --opt amp,fuse -o causes.svg
daydream export run.ddtrace --to csv -o tasks.csv
daydream export run.ddtrace --folded | grep ^GPU | flamegraph.pl --countname ns > gpu.svg
daydream export run.ddtrace --to dot --top 100 | dot -Tsvg > step.svg)",
    .flags = kExportFlags,
    .takes = {.traces = true, .least = 1, .most = 1},
    .run = RunExport,
};

}  // namespace daydream
