#include "tools/input/inputs.h"

#include <cmath>
#include <utility>

#include "report/parallel.h"
#include "report/predict/why_it_fails.h"
#include "report/text/format.h"
#include "simulator/simulate.h"
#include "tools/input/joint_input.h"
#include "tools/input/rank_input.h"
#include "tools/memory.h"
#include "trace/part/steps_to_ask.h"

namespace daydream {
namespace {

// Above this the replay is called out, as in the help of --max-replay-error.
constexpr double kReplayWarning = 0.03;
// Rows of a trace above which its two graphs are not held at once: 160 bytes a row each.
constexpr size_t kManyRows = kLongRecording;

// Of the graph with typical lags, which is needed for nothing else. None when there is none.
absl::StatusOr<std::optional<Duration>> TypicalStep(std::shared_ptr<const Trace> trace,
                                                    const Args& args) {
  const auto typical = BuildFor(std::move(trace), args, {.lags = Lags::kTypical});
  if (!typical.ok()) return std::nullopt;
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(typical->graph, {.once = true}));
  return StepTime(typical->graph, timeline);
}

// Played many times: by one plan.
void Done(Graph& graph) {
  if (graph.wiring() == 0) graph.NameWiring();
}

}  // namespace

absl::Status JudgeRecording(Inputs& in, std::optional<Duration> typical) {
  Done(in.built.graph);
  DD_ASSIGN_OR_RETURN(in.replay, CheckReplay(in.built, nullptr));
  in.replay.typical = typical;
  DD_ASSIGN_OR_RETURN(Health health, MakeSteady(in.built, in.replay));
  Done(in.built.graph);
  in.findings = std::move(health.findings);
  in.stalls = std::move(health.stalls);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Duration>> BuildTwice(std::shared_ptr<const Trace> trace,
                                                   const Args& args, Session& session,
                                                   absl::StatusOr<BuiltGraph>& built) {
  session.Progress("building the graph");
  absl::StatusOr<std::optional<Duration>> typical;
  const bool at_once = trace->rows() <= kManyRows;
  ForEachParallel(2, at_once ? session.jobs() : 1, [&](size_t i) {
    if (i == 0) typical = TypicalStep(trace, args);
    if (i == 1) built = BuildFor(trace, args);
  });
  return typical;
}

absl::Status BuildAndJudge(Inputs& in, const std::string& path, const Args& args,
                           Session& session) {
  absl::StatusOr<BuiltGraph> built;
  const auto typical = BuildTwice(in.trace, args, session, built);
  if (!built.ok()) return built.status();
  in.built = *std::move(built);
  DD_RETURN_IF_ERROR(typical.status());
  session.Progress("checking the replay");
  DD_RETURN_IF_ERROR(JudgeRecording(in, *typical));
  TellOneRank(path, args, session, in);
  return absl::OkStatus();
}

void TellOneRank(const std::string& path, const Args& args, Session& session, Inputs& in) {
  if (WasGiven("--rank", args) || !HoldsRanks(path)) return;
  for (Finding& f : in.findings) {
    if (f.kind != FindingKind::kWaitsForRanks) continue;
    f.fix = fmt::format("daydream ranks {} names the late one", path);
  }
  const std::vector<Rank>& ranks = in.built.graph.tables().trace->ranks;
  const std::string name = ranks.empty() ? "one rank" : NameOf(ranks[0], 0);
  const std::optional<Duration> all = StepOfFolder(path, args, session);
  in.findings.insert(
      in.findings.begin(),
      {.kind = FindingKind::kOneRank,
       .about = About::kStep,
       .text = fmt::format(
           "{}this is {} of a folder of ranks, alone: {} is its own step, with its "
           "waits for the others as they were recorded",
           all ? fmt::format("played together, the ranks take {} a step; ", FormatTime(*all)) : "",
           name, FormatTime(in.replay.steady.value_or(in.replay.measured))),
       .where = name,
       .time = {},
       .fix =
           "daydream whatif, advise and ranks play all of them together; --rank R looks at another "
           "one"});
}

absl::StatusOr<Inputs> LoadInputs(const std::string& path, const Args& args, Session& session) {
  Inputs in;
  DD_ASSIGN_OR_RETURN(in.trace, ReadAsked(path, args, session));
  WarnAboutMemory({&in.trace, 1}, session);
  DD_RETURN_IF_ERROR(BuildAndJudge(in, path, args, session));
  if (args.Has("--samples")) {
    DD_ASSIGN_OR_RETURN(uint64_t samples, ParseCount("--samples", args.Get("--samples")));
    in.replay.batch = {static_cast<double>(samples), "--samples"};
  }
  if (args.Has("--true-step")) {
    DD_ASSIGN_OR_RETURN(Duration target, ParseTrueStep(args.Get("--true-step")));
    DD_ASSIGN_OR_RETURN(in.true_step, TakeOffRecording(target, in.built.graph));
    in.replay.given = in.true_step->target;
    if (!in.true_step->reached()) in.replay.not_reached = target;
    session.Note(fmt::format(
        "host work as without the profiler: {} less for each of {} pieces in a step, so that it "
        "takes {} instead of the recorded {}{}",
        FormatTime(in.true_step->per_event),
        FormatCount(static_cast<uint64_t>(std::llround(in.true_step->tasks))),
        FormatTime(in.true_step->target), FormatTime(in.true_step->recorded),
        !in.true_step->reached()
            ? fmt::format("; not {}, for the GPU's part takes what it took", FormatTime(target))
            : ""));
  }
  if (!args.Has("--true-step")) DD_RETURN_IF_ERROR(LeaveOutRecording(args, in.built, in.replay));
  return in;
}

absl::Status LeaveOutRecording(const Args& args, BuiltGraph& built, ReplayCheck& replay) {
  if (args.Has("--keep-recording-cost") || !replay.no_step.ok()) return absl::OkStatus();
  DD_ASSIGN_OR_RETURN(replay.unrecorded, LeaveOutRecording(built.graph));
  return absl::OkStatus();
}

absl::Status ReplayFailed(const ReplayCheck& replay, double limit, const std::string& path) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0602",
       .what = fmt::format("a check of the replay fails: {}", replay.worst().what),
       .where = path,
       .why = std::string(WhyItFails(replay)),
       .effect = "predictions would be off by as much, so none is made",
       .fix = fmt::format("{}, or accept it with --max-replay-error {:.0f}%",
                          replay.steps > 1 ? "choose steps with --steps" : "record more steps",
                          std::ceil(replay.worst().error * 100) + (limit < 0 ? 1 : 0))});
}

absl::Status NoAnswer(const ReplayCheck& replay, double limit, const std::string& path) {
  if (!replay.no_step.ok()) return replay.no_step;
  return replay.worst().error > limit ? ReplayFailed(replay, limit, path) : absl::OkStatus();
}

void WarnAboutReplay(const ReplayCheck& replay, Session& session) {
  const ReplayCheck::Worst worst = replay.worst();
  if (worst.error > kReplayWarning) {
    session.Warn({.code = "W0602",
                  .what = fmt::format("a check of the replay: {}", worst.what),
                  .effect = "expect predictions to be off by as much"});
  } else if (const std::string doubt = replay.step_doubt(); !doubt.empty()) {
    session.Warn(
        {.code = "W0602",
         .what = fmt::format("a check of the replay: {}", doubt),
         .effect = "predictions are of the mean, and no word for them is better than medium",
         .fix = "choose steps with --steps"});
  }
}

}  // namespace daydream
