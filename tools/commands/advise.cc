#include "report/questions/own_mistake.h"
#include "tools/budget.h"
#include "tools/command.h"
#include "tools/input/candidates.h"
#include "tools/input/inputs.h"
#include "tools/input/joint_input.h"
#include "tools/input/scenarios.h"
#include "tools/output/advise_output.h"
#include "tools/output/findings_text.h"
#include "tools/output/joint_questions.h"
#include "tools/output/refused.h"
#include "tools/output/report_page.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr std::string_view kObjectives[] = {"step", "throughput", "cost"};
const Flag kAdviseFlags[] = {
    {.name = "--opt-file",
     .value = "FILE",
     .help = "also try this optimization of your own (YAML)",
     .repeats = true},
    {.name = "--opt",
     .value = "SPEC",
     .help = "also try this one with a value of yours: 'batch(x2)'",
     .repeats = true},
    {.name = "--exclude", .value = "NAME", .help = "leave this optimization out", .repeats = true},
    {.name = "--budget",
     .value = "LIMIT",
     .help = "only what takes no more: 'effort<=20 lines' (a set in all), risk=none, "
             "'risk!=numerics'",
     .repeats = true},
    {.name = "--objective",
     .value = "GOAL",
     .help = "rank by step, by throughput or cost (time for as many examples as recorded)",
     .fallback = "step",
     .choices = kObjectives,
     .unoffered = "energy"},
    {.name = "--details",
     .value = "N",
     .help = "options that are shown with the reason, the code and the command that checks them",
     .fallback = "1"},
    {.name = "--html",
     .help = "write a page like that of report, with the options in full: -o FILE"},
    kTrueStepFlag,
    kKeepRecordingCostFlag,
    kSamplesFlag,
    kMaxReplayErrorFlag,
    kClockFlag,
};

// Goals that nothing in a trace can tell.
absl::Status CheckObjective(std::string_view goal, std::span<const Application> options) {
  auto refuse = [&](std::string why, std::string fix) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0711",
                       .what = fmt::format("options cannot be ranked by {}", goal),
                       .why = std::move(why),
                       .fix = std::move(fix)});
  };
  if (goal == "energy") {
    return refuse("no trace holds what a kernel draws, and it is not modelled",
                  "--objective step; clocks and power are the same for most options");
  }
  for (const Application& a : options) {
    if (goal != "cost" || a.transform->name != "gpu") continue;
    return refuse("what another GPU costs is not known", "--objective throughput");
  }
  return absl::OkStatus();
}

absl::Status WriteAdvice(const Args& args, const AdviseReport& report, Session& session) {
  return session.WriteResult(args, {.table = [&] { return AdviseText(report, session); },
                                    .json = [&] { return AdviseJson(report); },
                                    .csv = [&] { return AdviseCsv(report); },
                                    .markdown = [&] { return AdviseMarkdown(report, session); }});
}

void SayNext(const AdviseReport& report, std::string_view otherwise, Session& session) {
  const std::vector<Option>& worth = report.advised.worth;
  session.Next(worth.empty() ? fmt::format("daydream {} {}", otherwise, report.path)
                             : fmt::format("daydream whatif {} --opt '{}'", report.path,
                                           worth[0].prediction.name));
}

// What could not be judged, as where there is advice.
void WriteNotJudged(const Candidates& candidates, const absl::Status& error, JsonWriter& json) {
  json.Key("options").BeginArray().EndArray();
  json.Key("not_judged").BeginArray();
  for (const Application& a : candidates.options) {
    json.BeginObject().Key("prediction");
    WritePrediction(RefusedPrediction({a}, error), json);
    json.EndObject();
  }
  json.EndArray();
}

// Ranks of one run: every option on all of them, played together.
absl::StatusOr<Exit> RunAdviseJoint(const Args& args, const Candidates& candidates,
                                    const Budget& budget, double limit, size_t details,
                                    Session& session) {
  const std::string& path = args.positional()[0];
  constexpr std::string_view kOfOneRank[] = {"--true-step", "--samples"};
  DD_RETURN_IF_ERROR(CheckAboutAllRanks(args, kOfOneRank));
  constexpr std::string_view kGoal[] = {"--objective"};
  if (args.Get("--objective") != "step") DD_RETURN_IF_ERROR(CheckAboutAllRanks(args, kGoal));
  DD_ASSIGN_OR_RETURN(const JointInput in, LoadJoint(path, args, session));
  DD_ASSIGN_OR_RETURN(const JointReport ranks, PredictOnRanks(in, path, {}, "all"));
  if (const absl::Status off = CheckJointReplay(ranks, limit); !off.ok()) {
    return Refuse(off, "daydream.advise/1", nullptr, ranks.findings, args, session,
                  [&](JsonWriter& json) { WriteNotJudged(candidates, off, json); });
  }
  std::optional<InterruptNote> note(session.KeepsDone("options"));
  DD_ASSIGN_OR_RETURN(AdviseReport report,
                      AdviseOnRanks(path, ranks, candidates, budget, session, &*note));
  note.reset();
  report.details = details;
  DD_RETURN_IF_ERROR(WriteAdvice(args, report, session));
  const Exit exit = EndOf(report.advised, session);
  if (exit == Exit::kOk) SayNext(report, "ranks", session);
  return exit;
}

absl::Status CheckHtml(const Args& args) {
  if (!args.Has("--html")) return absl::OkStatus();
  const bool ranks = HoldsRanks(args.positional()[0]) && !args.Has("--rank");
  const bool format = args.Has("--format") && !args.IsDefault("--format");
  if (args.Has("--output") && !format && !ranks) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104",
       .what = ranks    ? "a page is about one rank"
               : format ? fmt::format("--html and --format {} are two forms", args.Get("--format"))
                        : "--html needs the name of the page to write",
       .fix = ranks    ? "--rank R; or daydream report, whose page is of all ranks"
              : format ? "keep one of them"
                       : "--html -o advice.html"});
}

absl::StatusOr<Exit> RunAdvise(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  size_t details = 0;
  if (args.Get("--details") != "0") {
    DD_ASSIGN_OR_RETURN(details, ParseCount("--details", args.Get("--details")));
  }
  DD_RETURN_IF_ERROR(CheckHtml(args));
  DD_ASSIGN_OR_RETURN(const Budget budget, ParseBudget(args.All("--budget")));
  DD_ASSIGN_OR_RETURN(Candidates candidates, FindCandidates(args, budget, session));
  const std::string_view goal = args.Get("--objective");
  DD_RETURN_IF_ERROR(CheckObjective(goal, candidates.options));
  const std::string& path = args.positional()[0];
  if (HoldsRanks(path) && !args.Has("--rank"))
    return RunAdviseJoint(args, candidates, budget, limit, details, session);
  DD_ASSIGN_OR_RETURN(Inputs in, LoadInputs(path, args, session));
  if (in.replay.worst().error > limit) {
    const absl::Status off = ReplayFailed(in.replay, limit, path);
    return Refuse(off, "daydream.advise/1", &in.replay, in.findings, args, session,
                  [&](JsonWriter& json) { WriteNotJudged(candidates, off, json); });
  }
  // A table explains its first rows only.
  const bool all = args.Has("--html") || FormatOf(args).value_or(Format::kTable) == Format::kJson;
  std::optional<InterruptNote> note(session.KeepsDone("options"));
  DD_ASSIGN_OR_RETURN(AdviseReport report,
                      AdviseOn(path, in, candidates, budget, goal != "step", session,
                               all ? AdviseOptions::kAllRows : details, &*note));
  note.reset();
  report.details = details;
  if (args.Has("--html")) {
    DD_ASSIGN_OR_RETURN(const std::string page,
                        MakeAdvicePage(kAdviseCommand, args, in, report, session));
    DD_RETURN_IF_ERROR(session.WriteResult(args, page));
    WarnAboutReplay(in.replay, session);
    DD_RETURN_IF_ERROR(in.replay.no_step);
    DD_RETURN_IF_ERROR(OwnMistake(report.advised));
    return EndOf(report.advised, session);
  }
  DD_RETURN_IF_ERROR(WriteAdvice(args, report, session));
  WarnAboutReplay(in.replay, session);
  DD_RETURN_IF_ERROR(BesideFindings(in.replay.no_step, in.findings, args));
  DD_RETURN_IF_ERROR(OwnMistake(report.advised));
  const Exit exit = EndOf(report.advised, session);
  if (exit == Exit::kOk) SayNext(report, "causal", session);
  return exit;
}

}  // namespace

const Command kAdviseCommand = {
    .name = "advise",
    .summary = "what to try next: every optimization ranked, and the best set",
    .usage = "TRACE|DIR [FLAG...]",
    .details =
        R"(Predicts every optimization that can be switched on, each alone with its default
parameters, and ranks those that save 0.5 % of the step or more. Then it looks for the
set that saves most: from the better of the best option and the best pair, options are
added while they save 0.5 % beside the others. Ceilings are limits for changes of one
kind: what changes several kinds of work can go below each.

Of a folder with the ranks of one run, every option is applied to all of them and they are
played together, beside them a faster NIC, another network, buckets that overlap, smaller
gradients and a faster slowest rank; the limit is what it would be if no exchange took
time. --rank asks one, also by --objective and with --true-step and --samples.

What finds nothing to change is named, and so is what this trace cannot answer, with how
to record one that can. For the first options it prints the code to try and the command
that scores the prediction against a recording made afterwards. The result is the same
for any number of threads. Exit code 4: the replay is too far off for any prediction.
Ctrl-C leaves the options that were tried, without a best set; again, it ends at once.)",
    .examples =
        R"(daydream advise run.ddtrace
daydream advise run.ddtrace --details 3 --exclude amp
daydream advise run.ddtrace --budget 'effort<=5 lines' --budget risk=none
daydream advise run.ddtrace --opt 'batch(x2)' --objective throughput
daydream advise run.ddtrace --opt-file mine.yaml --format json
daydream advise run.ddtrace --html -o advice.html)",
    .flags = kAdviseFlags,
    .takes = kOneTrace,
    .run = RunAdvise,
};

}  // namespace daydream
