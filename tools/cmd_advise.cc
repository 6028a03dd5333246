#include <cmath>

#include "tools/advise_output.h"
#include "tools/candidates.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/scenarios.h"

namespace daydream {
namespace {

constexpr Flag kFlags[] = {
    {.name = "--opt-file",
     .value = "FILE",
     .help = "also try this optimization of your own (YAML)",
     .repeats = true},
    {.name = "--exclude", .value = "NAME", .help = "leave this optimization out", .repeats = true},
    {.name = "--details",
     .value = "N",
     .help = "options that are shown with the reason, the code and the command that checks them",
     .fallback = "1"},
    {.name = "--max-replay-error",
     .value = "PCT",
     .help = "exit 4 when the unchanged replay is further off (a warning from 3 %)",
     .fallback = "10%"},
};

absl::StatusOr<std::string> Render(const AdviseReport& report, const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(Format format, FormatOf(args));
  switch (format) {
    case Format::kJson:
      return AdviseJson(report);
    case Format::kCsv:
      return AdviseCsv(report);
    case Format::kMarkdown:
      return AdviseMarkdown(report);
    case Format::kTable:
      break;
  }
  return AdviseText(report, session);
}

absl::StatusOr<Exit> Run(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  AdviseReport report;
  if (args.Get("--details") == "0") {
    report.details = 0;
  } else {
    DD_ASSIGN_OR_RETURN(report.details, ParseCount("--details", args.Get("--details")));
  }
  DD_ASSIGN_OR_RETURN(Candidates candidates, FindCandidates(args, session));
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(Inputs in, LoadInputs(path, args, session));
  if (std::fabs(in.replay.error()) > limit) return ReplayFailed(in.replay, limit, path);

  report.path = path;
  report.headline = Headline(*in.trace, in.built.graph);
  report.trace = in.trace.get();
  report.build = &in.built.report;
  report.open = candidates.open;
  const AdviseOptions options{
      .jobs = session.jobs(), .progress = [&](size_t done, size_t total) {
        session.Progress("trying", static_cast<double>(done) / static_cast<double>(total));
      }};
  DD_ASSIGN_OR_RETURN(report.advised,
                      Advise(in.built, in.replay, candidates.options, candidates.limits, options));
  DD_ASSIGN_OR_RETURN(std::string text, Render(report, args, session));
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  for (const std::string& warning : in.built.report.warnings) {
    session.Warn({.code = "W0601", .what = warning});
  }
  WarnAboutReplay(in.replay, session);
  session.Next(report.advised.worth.empty() ? fmt::format("daydream causal {}", path)
                                            : fmt::format("daydream whatif {} --opt {}", path,
                                                          report.advised.worth[0].prediction.name));
  return Exit::kOk;
}

}  // namespace

extern const Command kAdviseCommand;
const Command kAdviseCommand = {
    .name = "advise",
    .summary = "what to try next: every optimization ranked, and the best set",
    .usage = "TRACE [FLAG...]",
    .details =
        "Predicts every optimization that can be switched on, each alone with its default\n"
        "parameters, and ranks those that save 0.5 % of the step or more. Then it looks for the\n"
        "set that saves most: from the better of the best option and the best pair, options are\n"
        "added while they save. Ceilings are limits that nothing of their kind can beat.\n"
        "\n"
        "What finds nothing to change is named, and so is what this trace cannot answer, with how\n"
        "to record one that can. For the first options it prints the code to try and the command\n"
        "that scores the prediction against a recording made afterwards. The result is the same\n"
        "for any number of threads. Exit code 4: the replay is too far off for any prediction.",
    .examples =
        "daydream advise run.ddtrace\n"
        "daydream advise run.ddtrace --details 3 --exclude amp\n"
        "daydream advise run.ddtrace --opt-file mine.yaml --format json",
    .flags = kFlags,
    .reads_traces = true,
    .writes_result = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .run = Run,
};

}  // namespace daydream
