#include <optional>
#include <set>

#include "report/text/format.h"
#include "tools/command.h"
#include "tools/gate.h"
#include "tools/input/inputs.h"
#include "tools/input/joint_input.h"
#include "tools/input/learned_file.h"
#include "tools/input/scenarios.h"
#include "tools/output/about_last.h"
#include "tools/output/findings_text.h"
#include "tools/output/joint_questions.h"
#include "tools/output/refused.h"
#include "tools/output/score.h"
#include "tools/output/watch_whatif.h"
#include "tools/output/whatif_output.h"
#include "tools/running/interrupt.h"
#include "transforms/parallel/transfers.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr std::string_view kBy[] = {"cause", "layer", "phase", "kernel", "op", "resource"};
constexpr std::string_view kPeers[] = {"joint", "recorded", "alike", "waits", "none", "alone"};
const Flag kWhatIfFlags[] = {
    {.name = "--opt",
     .value = "SPEC",
     .help = "optimizations to apply together, 'amp(dtype=bf16),fuse'; each --opt is a scenario",
     .repeats = true},
    kOptFileFlag,
    {.name = "--peers",
     .value = "WHAT",
     .help =
         "what other ranks do: joint plays all that are recorded; of one rank: recorded (others "
         "arrive when they did), alike (as this one), waits or alone (waiting stays), none",
     .fallback = "joint",
     .choices = kPeers},
    {.name = "--on",
     .value = "RANKS",
     .help = "of ranks that are played together, those that change: 'ranks 0-3,6'",
     .fallback = "all"},
    kClockFlag,
    {.name = "--no-alone", .help = "do not also predict each optimization of a list alone"},
    {.name = "--alone", .help = "predict each optimization of a list alone, too (the default)"},
    kSetFlag,
    {.name = "--by",
     .value = "GROUP",
     .help = "breakdown by cause, layer, phase, kernel, op or resource",
     .fallback = "cause",
     .choices = kBy},
    {.name = "--measured",
     .value = "TRACE",
     .help = "score the last scenario against a trace recorded after the change"},
    {.name = "--learn",
     .value = "FILE",
     .help = "with --measured: keep what the prediction was off by in this file"},
    {.name = "--learned",
     .value = "FILE",
     .help = "correct and narrow predictions by what --learn kept for the same optimizations"},
    {.name = "--timeline",
     .value = "FILE",
     .help = "write before and after: .pftrace for Perfetto, .json for chrome://tracing"},
    {.name = "--fail-if",
     .value = "EXPR",
     .help = "exit 5 when it holds for the last scenario: 'speedup < 1.1', 'step > +3%'",
     .repeats = true},
    kTrueStepFlag,
    kKeepRecordingCostFlag,
    kSamplesFlag,
    kMaxReplayErrorFlag,
    {.name = "--no-interval",
     .help = "skip the intervals, which need more replays; "
             "what is low for a wide one reads medium then"},
    {.name = "--watch",
     .help = "ask again whenever the trace or an option file changes, a line an answer, until "
             "Ctrl-C"},
    {.name = "--allow-no-effect", .help = "exit 0 even if a scenario finds nothing to change"},
};

// A note with the scenario that it belongs to.
template <class AnyPrediction>
std::string OfWhatIf(const AnyPrediction& p, const std::string& note) {
  const std::string name = Printable(p.name) + ": ";
  return note.starts_with(name) ? note : name + note;
}

// Each note once, behind the scenarios that it belongs to.
template <class AnyPrediction>
void TellNotes(const std::vector<AnyPrediction>& predictions, Session& session) {
  constexpr size_t kMostNamed = 3;
  std::vector<std::pair<std::string, std::vector<const AnyPrediction*>>> notes;
  for (const AnyPrediction& p : predictions) {
    for (const std::string& note : p.changes.notes) {
      auto known = std::ranges::find(notes, note, [](const auto& n) { return n.first; });
      if (known == notes.end()) known = notes.insert(notes.end(), {note, {}});
      known->second.push_back(&p);
    }
  }
  for (const auto& [note, of] : notes) {
    std::string names;
    for (size_t i = 0; i + 1 < std::min(of.size(), kMostNamed); ++i) {
      names += Printable(of[i]->name) + ", ";
    }
    const AnyPrediction& last = *of[std::min(of.size(), kMostNamed) - 1];
    const std::string others =
        of.size() > kMostNamed ? fmt::format(" and {} more", of.size() - kMostNamed) : "";
    session.Note(of.size() == 1
                     ? OfWhatIf(last, note)
                     : fmt::format("{}{}{}: {}", names, Printable(last.name), others, note));
  }
}

// Of one rank, or of ranks together.
void TellLeftOut(const auto& prediction, Session& session) {
  for (const std::string& part : prediction.left_out) {
    session.Warn({.code = "W0601",
                  .what = fmt::format("{}: {} finds nothing to change here",
                                      Printable(prediction.name), Printable(part)),
                  .effect = "the combination is predicted without it"});
  }
}

// Warnings and errors of the scenarios, each text once, at the first that it belongs to.
void Comment(const WhatIfReport& report, const Args& args, Session& session) {
  std::set<std::string> said;
  if (report.score.has_value() && !report.score->not_the_same.empty()) {
    session.Warn({.code = "W0606",
                  .what = fmt::format("{} does not measure what was predicted", report.score->file),
                  .why = report.score->not_the_same});
  }
  for (const Prediction& p : report.result.predictions) {
    for (const std::string& warning : p.changes.Caveats()) {
      if (said.insert(warning).second)
        session.Warn({.code = "W0603", .what = OfWhatIf(p, warning)});
    }
  }
  TellNotes(report.result.predictions, session);
  for (const Prediction& p : report.result.predictions) {
    TellLeftOut(p, session);
    if (p.error.ok() || !said.insert(std::string(Message(p.error))).second) continue;
    session.Error(BesideFindings(p.error, report.findings, args));
  }
}

// Rows of --learned that fit no scenario change nothing, which is easily taken for an effect.
void CommentOnLearned(const Args& args, const WhatIf& result, const Inputs& in, Session& session) {
  if (!args.Has("--learned")) return;
  for (const Prediction& p : result.predictions) {
    if (p.learned.rows > 0) return;
  }
  session.Note(
      fmt::format("--learned {}: no row is about these optimizations on {}; nothing was "
                  "corrected",
                  args.Get("--learned"), Called(DeviceName(in.built.graph))));
}

// The last scenario, for --fail-if.
struct Judged {
  Duration before, after;
  double speedup = 1;
  double replay_error = 0;
};

// Every --fail-if; none: there is nothing to decide it by.
absl::StatusOr<std::vector<Verdict>> Judge(const Args& args, const std::optional<Judged>& last) {
  const std::vector<std::string> gates = args.All("--fail-if");
  if (!last.has_value()) {
    std::vector<Verdict> open;
    open.reserve(gates.size());
    for (const std::string& text : gates) open.push_back({.text = text});
    return open;
  }
  auto ns = [](Duration d) { return static_cast<double>(d.ns); };
  const double before = ns(last->before), after = ns(last->after);
  return JudgeGates(gates, {{"speedup", {last->speedup}},
                            {"step", {after, true, before}},
                            {"saved", {before - after, true, before}},
                            {"replay_error", {.value = last->replay_error, .share = true}}});
}

Exit TellVerdicts(std::span<const Verdict> gates, std::string_view name, Session& session) {
  for (const Verdict& v : gates) {
    if (!v.holds.value_or(false)) continue;
    session.Error(MakeStatus(
        absl::StatusCode::kAborted,
        {.code = "E0604", .what = fmt::format("--fail-if '{}' holds for {}", v.text, name)}));
    return Exit::kGateFailed;
  }
  return Exit::kOk;
}

// Mistakes that need no trace are told before one is read.
absl::Status CheckWhatIfFlags(const Args& args) {
  const GateValues any = {{"speedup", {1}},
                          {"step", {0, true, 1}},
                          {"saved", {0, true, 1}},
                          {"replay_error", {.share = true}}};
  for (const std::string& text : args.All("--fail-if")) {
    DD_ASSIGN_OR_RETURN(Gate gate, ParseGate(text));
    DD_RETURN_IF_ERROR(GateHolds(gate, any).status());
  }
  if (args.Has("--learn") && !args.Has("--measured")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "--learn needs --measured",
                       .why = "it keeps what a prediction was off by",
                       .fix = "--measured AFTER.ddtrace --learn FILE"});
  }
  return absl::OkStatus();
}

// Its last scenario, where that could be predicted.
std::optional<Judged> LastOf(const JointReport& report) {
  const JointAnswer& before = report.baseline;
  if (report.missing.any()) return std::nullopt;  // the last is missing, too
  Judged last{before.step, before.step, 1, before.check.span_error};
  if (report.predictions.empty()) return last;
  const JointPrediction& p = report.predictions.back();
  if (!p.error.ok()) return std::nullopt;
  last.after = p.answer.step, last.speedup = p.speedup;
  return last;
}

// Ranks of one run, played together. Nothing when no two of them have a collective in common,
// unless that was asked for.
absl::StatusOr<std::optional<Exit>> RunWhatIfJoint(const Args& args, Session& session) {
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(const double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  DD_ASSIGN_OR_RETURN(auto scenarios, ParseScenarios(args));
  const auto asked_for = scenarios;
  if (!args.Has("--no-alone")) scenarios = WithParts(scenarios);
  const std::string_view asked = AsksForAll(args);
  absl::StatusOr<JointInput> in = LoadJoint(path, args, session, asked);
  if (!in.ok() && DiagnosticOf(in.status()).code == "E0435" && asked.empty()) {
    session.Note("no two of these ranks have a collective in common: one is looked at alone");
    return std::nullopt;
  }
  if (!in.ok()) return in.status();
  std::optional<InterruptNote> note(session.KeepsDone("scenarios"));
  DD_ASSIGN_OR_RETURN(JointReport report,
                      PredictOnRanks(*in, path, scenarios, args.Get("--on"),
                                     ProgressOf("predicting", session, &*note)));
  note.reset();
  DropPartsOnlyTogether(asked_for, report);
  if (args.Has("--no-interval")) DropIntervals(report);
  if (const absl::Status off = CheckJointReplay(report, limit); !off.ok() && !scenarios.empty()) {
    const auto rows = [&](JsonWriter& json) {
      json.Key("scenarios").BeginArray();
      for (const auto& s : scenarios) WritePrediction(RefusedPrediction(s, off), json);
      json.EndArray();
    };
    return Refuse(off, "daydream.whatif/1", nullptr, report.findings, args, session, rows);
  }
  DD_ASSIGN_OR_RETURN(report.gates, Judge(args, LastOf(report)));
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table = [&] { return JointWhatIfText(report, session); },
             .json = [&] { return JointWhatIfJson(report); },
             .csv = [&] { return JointWhatIfCsv(report, session.unit()); },
             .markdown = [&] { return JointWhatIfMarkdown(report, session); }}));
  Exit exit = Exit::kOk;
  for (const JointPrediction& p : report.predictions) {
    for (const std::string& w : p.changes.Caveats()) {
      session.Warn({.code = "W0603", .what = fmt::format("{}: {}", Printable(p.name), w)});
    }
    TellLeftOut(p, session);
    if (!p.error.ok()) session.Error(p.error);
    const bool whole = p.error.ok() && p.left_out.empty();
    if (!whole && !args.Has("--allow-no-effect")) exit = Exit::kCannotAnswer;
  }
  TellNotes(report.predictions, session);
  const Exit gate = TellVerdicts(
      report.gates, report.predictions.empty() ? "baseline" : report.predictions.back().name,
      session);
  if (report.missing.any()) return EndNotDone(report.missing, session);
  return gate != Exit::kOk ? gate : exit;
}

// Predicts `scenarios` and what is asked about the last of them; what is done, when it is told to
// stop.
absl::Status Answer(const Args& args, Session& session, const Inputs& in,
                    const std::vector<std::vector<Application>>& scenarios, WhatIfOptions options,
                    WhatIfReport& report) {
  InterruptNote note(session.KeepsDone("scenarios"));
  options.stopped = [&] { return note.stopped(); };
  options.progress = ProgressOf("predicting", session, &note);
  DD_ASSIGN_OR_RETURN(report.result, PredictAll(in.built, in.replay, scenarios, options));
  if (!options.refused.ok()) return absl::OkStatus();
  const size_t done = report.result.predictions.size() - 1;
  report.missing.scenarios = report.result.not_done;
  report.missing.asked = done + report.missing.scenarios.size();
  note.Done(done, report.missing.asked);
  return AnswerAboutLast(args, session, in,
                         scenarios.empty() ? std::vector<Application>() : scenarios.back(),
                         options.stopped, report);
}

absl::StatusOr<Exit> RunWhatIf(const Args& args, Session& session) {
  if (args.Has("--watch")) return WatchWhatIf(args, session);
  const std::string_view peers = args.Get("--peers");
  DD_RETURN_IF_ERROR(CheckWhatIfFlags(args));
  DD_ASSIGN_OR_RETURN(const bool ranks, PlaysRanks(args));
  if (ranks) {
    DD_ASSIGN_OR_RETURN(const std::optional<Exit> exit, RunWhatIfJoint(args, session));
    if (exit.has_value()) return *exit;
  }
  DD_ASSIGN_OR_RETURN(double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  DD_ASSIGN_OR_RETURN(auto scenarios, ParseScenarios(args));
  std::vector<LearnedRow> learned;
  if (args.Has("--learned")) {
    DD_ASSIGN_OR_RETURN(learned, ReadLearned(std::string(args.Get("--learned")), session));
  }
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(Inputs in, LoadInputs(path, args, session));
  // Where all are alike nobody waits, and where nobody is waited for neither.
  if (peers == "alike" || peers == "none") DropWaits(in.built.graph);

  WhatIfReport report = ReportOf(in);
  report.by = std::string(args.Get("--by"));
  const bool failed = in.replay.worst().error > limit;
  const WhatIfOptions options{
      .alone = !args.Has("--no-alone"),
      .intervals = !args.Has("--no-interval"),
      .explain_all = FormatOf(args).value_or(Format::kTable) == Format::kJson,
      .true_step = report.true_step,
      .refused = failed ? ReplayFailed(in.replay, limit, path) : absl::OkStatus(),
      .jobs = session.jobs(),
      .learned = learned};
  DD_RETURN_IF_ERROR(Answer(args, session, in, scenarios, options, report));
  const Prediction& main = report.result.predictions[report.result.main];
  std::optional<Judged> last;
  if (!failed && report.result.main_done && main.error.ok()) {
    last = {report.result.predictions[0].step, main.step, main.speedup, in.replay.worst().error};
  }
  DD_ASSIGN_OR_RETURN(report.gates, Judge(args, last));
  DD_RETURN_IF_ERROR(
      session.WriteResult(args, {.table = [&] { return WhatIfText(report, session); },
                                 .json = [&] { return WhatIfJson(report); },
                                 .csv = [&] { return WhatIfCsv(report); },
                                 .markdown = [&] { return WhatIfMarkdown(report, session); }}));
  if (failed) return ReplayFailed(in.replay, limit, path);
  WarnAboutReplay(in.replay, session);
  Comment(report, args, session);
  if (!report.missing.any()) CommentOnLearned(args, report.result, in, session);
  const Exit gate = TellVerdicts(report.gates, main.name, session);
  if (report.missing.any()) return EndNotDone(report.missing, session);
  if (gate != Exit::kOk) return gate;
  for (const Prediction& p : report.result.predictions) {
    bool whole = p.error.ok() && p.left_out.empty();
    if (!whole && !args.Has("--allow-no-effect")) return Exit::kCannotAnswer;
  }
  if (scenarios.empty()) session.Next(fmt::format("daydream advise {}", path));
  return Exit::kOk;
}

}  // namespace

const Command kWhatIfCommand = {
    .name = "whatif",
    .summary = "predict what optimizations would bring",
    .usage = "TRACE [--opt SPEC]...",
    .details =
        R"(SPEC is a list like 'amp(dtype=bf16),fuse': applied together, in any order, and each one
alone as well. Repeat --opt for separate scenarios. The first line compares the replay of
the unchanged trace with what was measured; without --opt that is all. Speed-ups printed
with <= are limits, not predictions. Causes sum to the difference from the baseline.

Ranks of a folder are played together, and --fail-if is about their step. What is about
one of them (--by, --timeline, --true-step, --samples, --steps, --measured, --learn,
--learned) is asked with --rank R.

A scenario that cannot be predicted, for example because nothing in the trace matches,
is printed as such while the others are predicted. Parts of a combination that match
nothing are left out of it with a warning. The exit code is 4 in both cases. Ctrl-C leaves
the scenarios that are done and names the others; again, it ends at once.)",
    .examples =
        R"(daydream whatif run.ddtrace --opt amp,fuse
daydream whatif run.ddtrace --opt graphs --opt 'prefetch(workers=4)' --format json
daydream whatif run.ddtrace --opt amp --measured with-amp.ddtrace --learn mine.txt
daydream whatif other.ddtrace --opt amp --learned mine.txt
daydream whatif run.ddtrace --opt amp,fuse --timeline both.pftrace
daydream whatif run.ddtrace --opt fuse --fail-if 'speedup < 1.02'
daydream whatif run.ddtrace --opt amp --format md >> $GITHUB_STEP_SUMMARY
daydream whatif run.ddtrace --opt-file mine.yaml --watch)",
    .flags = kWhatIfFlags,
    .takes = kOneTrace,
    .run = RunWhatIf,
};

}  // namespace daydream
