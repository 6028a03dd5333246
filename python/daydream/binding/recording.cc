#include "python/daydream/binding/recording.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "report/host_table.h"
#include "report/parallel.h"
#include "report/questions/dense_sweep.h"
#include "report/questions/sweep.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "tools/budget.h"
#include "tools/command.h"
#include "tools/input/candidates.h"
#include "tools/input/joint_input.h"
#include "tools/input/scenarios.h"
#include "tools/output/advise_output.h"
#include "tools/output/joint_questions.h"
#include "tools/output/score.h"
#include "tools/output/summary_json.h"
#include "tools/output/sweep_output.h"
#include "tools/output/whatif_output.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/scenario/turn.h"

namespace daydream {
namespace {

absl::StatusOr<Args> ArgsOf(std::string_view command, std::span<const std::string> words) {
  return ParseArgs(FlagsOf(*FindCommand(command)), words);
}

// A session that prints nothing.
Session SilentSession(const Args& args, const Recording::Progress& progress, Messages* messages) {
  Session session;
  session.Configure(args);
  session.TellTo({.message =
                      [messages](const Diagnostic& d, Severity severity) {
                        if (messages != nullptr) messages->emplace_back(severity, d);
                      },
                  .progress = progress});
  return session;
}

absl::StatusOr<std::vector<Application>> Together(const ScenarioParts& parts, const Args& args) {
  std::vector<Application> scenario;
  if (!parts.spec.empty() || parts.own.empty()) {
    DD_ASSIGN_OR_RETURN(auto parsed, ParseSpecs(args, {&parts.spec, 1}));
    scenario = std::move(parsed.front());
  }
  scenario.insert(scenario.end(), parts.own.begin(), parts.own.end());
  PutInTurn(scenario);
  return scenario;
}

absl::Status IsAFolder(const std::string& path, std::string_view question) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0437",
                     .what = fmt::format("{} holds several ranks of one run", path),
                     .why = fmt::format("{} is about one rank", question),
                     .fix = "load(..., rank=0), or rank='auto'"});
}

// Optimizations in Python edit one rank.
bool AnyOwn(std::span<const ScenarioParts> scenarios) {
  return std::ranges::any_of(scenarios, [](const ScenarioParts& s) { return !s.own.empty(); });
}

}  // namespace

absl::StatusOr<Recording> Recording::Load(const std::string& path,
                                          std::span<const std::string> words,
                                          const Progress& progress, Messages& messages) {
  DD_ASSIGN_OR_RETURN(const Args args, ArgsOf("whatif", words));
  Session session = SilentSession(args, progress, &messages);
  Recording recording;
  recording.path_ = path;
  // As the command: one of them, where they have nothing in common.
  if (HoldsRanks(path) && !args.Has("--rank")) {
    if (args.Has("--steps")) return IsAFolder(path, "steps=");
    if (args.Has("--true-step")) return IsAFolder(path, "true_step=");
    auto joint = LoadJoint(path, args, session);
    if (joint.ok()) {
      recording.joint_ = std::make_unique<JointInput>(*std::move(joint));
      return recording;
    }
    if (DiagnosticOf(joint.status()).code != "E0435") return joint.status();
  }
  DD_ASSIGN_OR_RETURN(recording.in_, LoadInputs(path, args, session));
  WarnAboutReplay(recording.in_.replay, session);
  return recording;
}

absl::Status Recording::CheckReplayOf(const Args& args) const {
  DD_ASSIGN_OR_RETURN(const double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  if (in_.replay.worst().error > limit) return ReplayFailed(in_.replay, limit, path_);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Recording::WhatIf(std::span<const ScenarioParts> scenarios,
                                              std::span<const std::string> words,
                                              const Progress& progress) const {
  DD_ASSIGN_OR_RETURN(const Args args, ArgsOf("whatif", words));
  Session session = SilentSession(args, progress, nullptr);
  std::vector<std::vector<Application>> applications;
  for (const ScenarioParts& parts : scenarios) {
    DD_ASSIGN_OR_RETURN(auto scenario, Together(parts, args));
    applications.push_back(std::move(scenario));
  }
  if (joint_ != nullptr) {
    DD_ASSIGN_OR_RETURN(const double limit,
                        ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
    if (AnyOwn(scenarios)) return IsAFolder(path_, "an optimization of your own");
    DD_ASSIGN_OR_RETURN(JointReport report,
                        PredictOnRanks(*joint_, path_, applications, args.Get("--on"),
                                       ProgressOf("predicting", session, nullptr)));
    if (args.Has("--no-interval")) DropIntervals(report);
    if (!applications.empty()) DD_RETURN_IF_ERROR(CheckJointReplay(report, limit));
    return JointWhatIfJson(report);
  }
  if (args.Has("--on")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0437",
                       .what = fmt::format("{} is one rank", path_),
                       .why = "on= says which of several ranks change",
                       .fix = "load() of a folder of ranks without rank=, or leave on= out"});
  }
  // What was recorded can be looked at however far off its replay is.
  if (!applications.empty()) DD_RETURN_IF_ERROR(CheckReplayOf(args));
  WhatIfReport report = ReportOf(in_);
  const WhatIfOptions options{.alone = !args.Has("--no-alone"),
                              .intervals = !args.Has("--no-interval"),
                              .true_step = report.true_step,
                              .jobs = session.jobs(),
                              .progress = [&](size_t, size_t) { session.Progress(""); }};
  DD_ASSIGN_OR_RETURN(report.result, PredictAll(in_.built, in_.replay, applications, options));
  return WhatIfJson(report);
}

absl::StatusOr<std::string> Recording::Ranks() const {
  if (joint_ == nullptr) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0437",
                       .what = fmt::format("{} is one rank", path_),
                       .fix = "load() of a folder with the traces of several ranks of one run"});
  }
  DD_ASSIGN_OR_RETURN(const JointReport report, PredictOnRanks(*joint_, path_, {}, "all"));
  return RanksJson(report);
}

absl::StatusOr<std::string> Recording::Advise(std::span<const std::string> words,
                                              const Progress& progress, Messages& messages) const {
  DD_ASSIGN_OR_RETURN(const Args args, ArgsOf("advise", words));
  Session session = SilentSession(args, progress, &messages);
  DD_ASSIGN_OR_RETURN(const Budget budget, ParseBudget(args.All("--budget")));
  DD_ASSIGN_OR_RETURN(const Candidates candidates, FindCandidates(args, budget, session));
  if (joint_ != nullptr) {
    DD_ASSIGN_OR_RETURN(const JointReport ranks, PredictOnRanks(*joint_, path_, {}, "all"));
    DD_ASSIGN_OR_RETURN(const double limit,
                        ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
    DD_RETURN_IF_ERROR(CheckJointReplay(ranks, limit));
    DD_ASSIGN_OR_RETURN(const AdviseReport report,
                        AdviseOnRanks(path_, ranks, candidates, budget, session));
    return AdviseJson(report);
  }
  DD_RETURN_IF_ERROR(CheckReplayOf(args));
  DD_ASSIGN_OR_RETURN(const AdviseReport report,
                      AdviseOn(path_, in_, candidates, budget, false, session));
  DD_RETURN_IF_ERROR(in_.replay.no_step);
  return AdviseJson(report);
}

absl::StatusOr<std::string> Recording::Summary(std::string_view by) const {
  const std::vector<std::string> words = {"--by", std::string(by)};
  DD_ASSIGN_OR_RETURN(const Args args, ArgsOf("summary", words));
  if (joint_ != nullptr) return IsAFolder(path_, "a summary");
  DD_RETURN_IF_ERROR(in_.replay.no_step);
  DD_RETURN_IF_ERROR(CheckReplayOf(args));
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(in_.built.graph, {.blockers = true}));
  const GroupBy group = ParseGroupBy(by).value_or(GroupBy::kClass);
  const daydream::Summary step = Summarize(in_.built.graph, timeline, group);
  if (by == "host") {
    return HostSummaryJson(HostTable(in_.built.graph, timeline), step, &in_.replay, in_.findings);
  }
  return SummaryJson(step, ProfileMemory(in_.built.graph), group, &in_.replay, in_.findings);
}

absl::StatusOr<std::string> Recording::Sweep(const std::vector<std::string>& specs,
                                             std::span<const std::string> words,
                                             const Progress& progress) const {
  DD_ASSIGN_OR_RETURN(const Args args, ArgsOf("sweep", words));
  const Session session = SilentSession(args, progress, nullptr);
  if (joint_ != nullptr) return IsAFolder(path_, "a sweep");
  DD_RETURN_IF_ERROR(CheckReplayOf(args));
  SweepResult result;
  result.head.specs = specs;
  DD_ASSIGN_OR_RETURN(result.plan, PlanSweep(specs));
  std::vector<std::string> points;
  for (const SweepPoint& point : result.plan.points) points.push_back(point.spec);
  DD_ASSIGN_OR_RETURN(const auto scenarios, ParseSpecs(args, points));
  const WhatIfOptions options{.intervals = !args.Has("--no-interval")};
  DD_ASSIGN_OR_RETURN(const SweepRunner runner, SweepRunner::Make(in_.built, in_.replay, options));
  result.head.trace = in_.trace->provenance.source;
  result.head.measured = in_.replay.measured;
  result.head.baseline = runner.baseline();
  result.rows.resize(scenarios.size());
  DenseSweep rows(runner, result.plan.points, scenarios);
  std::vector<size_t> todo(scenarios.size());
  std::iota(todo.begin(), todo.end(), size_t{0});
  rows.PutInTurn(todo);
  std::mutex one_at_a_time;
  ForEachParallel(todo.size(), session.jobs(), [&](size_t k) {
    result.rows[todo[k]] = rows.Run(todo[k]);
    if (!progress) return;
    std::lock_guard lock(one_at_a_time);
    progress();
  });
  return SweepJson(result);
}

}  // namespace daydream
