// The steady step: what findings say about a recording, put into its graph and its replay.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "absl/container/flat_hash_set.h"
#include "graph/step_windows.h"
#include "report/loader_workers.h"
#include "report/questions/busy_before.h"
#include "report/questions/far_longer.h"
#include "report/questions/findings.h"
#include "report/questions/held_waits.h"
#include "report/questions/longer_than_elsewhere.h"
#include "report/questions/op_stalls.h"
#include "report/questions/recorder_findings.h"
#include "report/questions/recording_end.h"
#include "report/questions/rest_of_event.h"
#include "report/questions/time_findings.h"
#include "report/questions/without_pause.h"
#include "report/text/format.h"
#include "simulator/simulate.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

// Chosen: where more of the window is work of unknown kind, no option can be judged.
constexpr double kMostGuessed = 0.20;
// Chosen: of the window, as in the finding.
constexpr double kLeastEarlier = 0.05;
// Chosen: of the operations, or of the step, that a rule does not hold for.
constexpr double kMostWithoutRule = 0.20, kMostUnlaunched = 0.50;

// Times of a damaged file, or of a plan without any: nothing can be compared with steps, or made of
// GPU work, of which half takes no time.
absl::Status HaveTime(const Graph& graph) {
  const auto [without, all] = WithoutTime(graph);
  const bool timeless = 2 * without >= all && all > 0;
  if (timeless && IsPlan(graph)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0607",
                       .what = "this plan has no times to predict anything of",
                       .why = fmt::format("{} of its {} GPU operations have no duration: it says "
                                          "what waits for what, not how long it takes",
                                          without, all),
                       .fix = "a plan with durations, or a recording of the same program"});
  }
  const auto refuse = [](std::string why) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0607",
                       .what = "this recording holds no step to predict anything of",
                       .why = std::move(why),
                       .fix = "record again"});
  };
  size_t steps = 0, none = 0;
  for (const GraphStep& step : graph.steps()) {
    steps += step.measured;
    none += step.measured && step.recorded_period <= Duration{};
  }
  if (2 * none >= steps && steps > 0) {
    return refuse(
        fmt::format("{} of its {} steps take 0 ns: the GPU work of several begins at one instant",
                    none, steps));
  }
  if (timeless) return refuse(fmt::format("{} of its {} GPU operations take 0 ns", without, all));
  return absl::OkStatus();
}

// A window without marks begins with its host, which may be ahead of the GPU: what that still does
// of earlier work is no part of the step. True when it was left out.
absl::StatusOr<bool> LeaveOutEarlierWork(const std::vector<Finding>& findings, BuiltGraph& built) {
  const bool cut = std::ranges::any_of(
      findings, [](const Finding& f) { return f.kind == FindingKind::kCutStep; });
  if (!cut || built.graph.steps().size() != 1) return false;
  DD_ASSIGN_OR_RETURN(const Timeline window, Simulate(built.graph));
  Graph lone = AsLoneStep(built.graph);
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(lone));
  const Duration step = StepTime(built.graph, window);
  if (StepTime(lone, timeline) > step.Scaled(1 - kLeastEarlier)) return false;
  built.graph = std::move(lone);
  return true;
}

absl::StatusOr<Duration> StepWithout(const Graph& graph, const std::vector<Stall>& stalls) {
  Graph without = graph;
  TakeOut(stalls, without);
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(without));
  return StepTime(without, timeline);
}

// Back into the step: nothing saves what no work takes.
void Keep(std::vector<Stall> kept, size_t counted, Stalls& stalls) {
  for (Stall& s : kept) {
    if (s.kind == StallKind::kOutside && counted > 1) stalls.waits.push_back(std::move(s));
  }
}

std::vector<Stall> TakeKind(StallKind kind, std::vector<Stall>& stalls) {
  const auto first = std::stable_partition(stalls.begin(), stalls.end(),
                                           [&](const Stall& s) { return s.kind != kind; });
  std::vector<Stall> taken(std::make_move_iterator(first), std::make_move_iterator(stalls.end()));
  stalls.erase(first, stalls.end());
  return taken;
}

// What may happen once is taken for that only where steps are shorter without it, several of them
// by a fourth of what it takes: the rest may be beside the step's way. All of it together is asked
// first, then each kind beside the others, which are taken out.
absl::Status KeepWhatTakesNothing(const Graph& graph, Stalls& stalls) {
  const size_t counted = CountedSteps(graph).size();
  if (stalls.all.empty() || stalls.no_step || counted == 0) return absl::OkStatus();
  const auto least = [&](const std::vector<Stall>& some) {
    return IdleMeanwhile(some, graph) / static_cast<int64_t>(counted) / 4;
  };
  DD_ASSIGN_OR_RETURN(const Timeline recorded, Simulate(graph));
  const Duration step = StepTime(graph, recorded);
  DD_ASSIGN_OR_RETURN(Duration without, StepWithout(graph, stalls.all));
  if (without > step - (counted == 1 ? step.Scaled(kLeastEarlier) : least(stalls.all))) {
    Keep(std::exchange(stalls.all, {}), counted, stalls);
  }
  std::set<StallKind> kinds;
  for (const Stall& s : stalls.all) kinds.insert(s.kind);
  for (const StallKind kind : kinds) {
    if (counted == 1 || kinds.size() == 1) break;
    std::vector<Stall> others = stalls.all;
    std::vector<Stall> some = TakeKind(kind, others);
    DD_ASSIGN_OR_RETURN(const Duration with, StepWithout(graph, others));
    if (with - without >= least(some)) continue;
    stalls.all = std::move(others);
    without = with;
    Keep(std::move(some), counted, stalls);
  }
  std::vector<const Stall*> all;
  for (const Stall& s : stalls.all) all.push_back(&s);
  stalls.taken = TakenTogether(graph, std::move(all));
  return absl::OkStatus();
}

// What predictions are made of is what must hold: a step with a stall is longer by itself than in
// the recording, where the GPU had a backlog.
absl::Status CheckWithout(const Graph& graph, const std::vector<Stall>& stalls,
                          ReplayCheck& replay) {
  Graph without = graph;
  TakeOut(stalls, without);
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(without));
  const std::vector<Duration> periods = StepPeriods(without, timeline);
  for (size_t s = 1; s < without.steps().size(); ++s) {
    without.mutable_step(s).recorded_period = periods[s - 1];
  }
  replay.unexplained = UnexplainedShare(without, StepTime(without, timeline));
  replay.repeated = RepeatTest(without);
  replay.crossed = CrossTest(without);
  return absl::OkStatus();
}

// What a recording shows, and what remains of that without its pauses. They alone show the pauses,
// and steps that differ for them.
std::vector<Finding> FindingsOfBoth(const std::vector<Finding>& recorded,
                                    const std::vector<Finding>& without) {
  const auto tells_of_pause = [](const Finding& f) {
    return f.kind == FindingKind::kPause || f.kind == FindingKind::kUnequalSteps ||
           TellsOfOneTime(f);
  };
  const auto in = [](const std::vector<Finding>& some, const Finding& f) {
    return std::ranges::find(some, f.kind, &Finding::kind) != some.end();
  };
  std::vector<Finding> both;
  std::ranges::copy_if(recorded, std::back_inserter(both),
                       [&](const Finding& f) { return tells_of_pause(f) || in(without, f); });
  std::ranges::copy_if(without, std::back_inserter(both),
                       [&](const Finding& f) { return !tells_of_pause(f) && !in(recorded, f); });
  return both;
}

// The graph of `trace`, which has the rows of that of `built`, and the steps that count there; none
// where it has other steps, or other tasks where the stalls are.
std::optional<BuiltGraph> BuiltAgain(std::shared_ptr<const Trace> trace, const Graph& built,
                                     const std::vector<Stall>& stalls) {
  auto again = BuildGraph(std::move(trace));
  if (!again.ok() || again->graph.steps().size() != built.steps().size()) return std::nullopt;
  for (const Stall& s : stalls) {
    if (s.task.index() >= again->graph.size()) return std::nullopt;
    const Task &then = built.task(s.task), &now = again->graph.task(s.task);
    if (now.lane != then.lane || now.name != then.name) return std::nullopt;
  }
  for (size_t s = 0; s < built.steps().size(); ++s) {
    again->graph.mutable_step(s).measured = built.steps()[s].measured;
  }
  if (built.steps().size() > 1) RecordPeriods(again->graph);
  return *std::move(again);
}

// Where a recording goes on behind a pause as if there had been none, it is judged without. None:
// it does not.
absl::StatusOr<std::optional<Health>> SteadyWithoutPauses(const Stalls& stalls, BuiltGraph& built,
                                                          ReplayCheck& replay) {
  auto trace = stalls.no_step ? nullptr : WithoutPauses(built.graph, stalls.all);
  if (trace == nullptr) return std::nullopt;
  auto again = BuiltAgain(std::move(trace), built.graph, stalls.all);
  if (!again.has_value()) return std::nullopt;
  DD_ASSIGN_OR_RETURN(ReplayCheck check, CheckReplay(*again, nullptr));
  DD_ASSIGN_OR_RETURN(Health health, MakeSteady(*again, check));
  health.findings = FindingsOfBoth(FindFindings(built, stalls, replay), health.findings);
  SortFindings(health.findings);
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(again->graph));
  const std::string left_out = LeaveOutRestOfEvents(stalls.all, timeline, again->graph);
  health.steady = StepTime(again->graph, timeline);
  const auto once = std::ranges::find_if(health.findings, TellsOfOneTime);
  if (once != health.findings.end()) {
    once->text = WithBoth(*once, replay.measured, health.steady) + left_out;
  }
  health.stalls.all = stalls.all;
  health.stalls.time = stalls.time;
  health.stalls.taken = stalls.taken;
  replay.steady = health.steady;
  replay.unexplained = check.unexplained;
  replay.repeated = check.repeated;
  replay.crossed = check.crossed;
  replay.no_step = check.no_step;
  built = *std::move(again);
  return health;
}

// The graph stays as it is where no call that waits for the GPU is a stall.
Stalls StallsOf(BuiltGraph& built, ReplayCheck& replay, bool& held) {
  const auto find = [](const Graph& graph) {
    Stalls stalls = FindStalls(graph);
    AddLongerThanElsewhere(graph, stalls);
    return stalls;
  };
  HeldWaits waits = SplitHeldWaits(built.graph);
  if (!waits.graph.has_value()) return find(built.graph);
  Stalls stalls = find(*waits.graph);
  const absl::flat_hash_set<TaskId> calls(waits.calls.begin(), waits.calls.end());
  const auto tells = [&](const Stall& s) { return !s.gap && calls.contains(s.task); };
  held = std::ranges::any_of(stalls.all, tells) || std::ranges::any_of(stalls.waits, tells);
  if (!held) return find(built.graph);
  built.graph = *std::move(waits.graph);
  built.report.unexplained -= waits.delays;
  built.report.unexplained_time = built.report.unexplained_time - waits.delay_time;
  // Typical lags know nothing of such delays.
  if (waits.delays > 0) replay.typical.reset();
  return stalls;
}

void TellDoubts(const std::vector<Finding>& findings, ReplayCheck& replay) {
  replay.doubt = DoubtOf(findings);
  replay.caution = CautionOf(findings);
  if (replay.caution.empty()) replay.caution = replay.step_doubt();
}

}  // namespace

std::string WithBoth(const Finding& f, Duration recorded, Duration steady) {
  return fmt::format("{} recorded a step; {} without {}: {}", FormatTime(recorded),
                     FormatTime(steady),
                     f.kind == FindingKind::kOneTime ? "what happens once" : "this", f.text);
}

absl::StatusOr<Health> MakeSteady(BuiltGraph& built, ReplayCheck& replay) {
  const std::optional<Finding> ended = LeaveOutEnd(built.graph);
  bool held = false;
  Health health{.findings = {}, .stalls = StallsOf(built, replay, held), .steady = {}};
  DD_RETURN_IF_ERROR(KeepWhatTakesNothing(built.graph, health.stalls));
  DD_ASSIGN_OR_RETURN(std::optional<Health> without,
                      SteadyWithoutPauses(health.stalls, built, replay));
  if (without.has_value()) {
    TellDoubts(without->findings, replay);
    return *std::move(without);
  }
  if (held || ended.has_value() || !health.stalls.all.empty()) {
    DD_RETURN_IF_ERROR(CheckWithout(built.graph, health.stalls.all, replay));
  }
  MarkStalls(health.stalls, built.graph);
  health.findings = FindFindings(built, health.stalls, replay);
  if (ended.has_value()) health.findings.push_back(*ended);
  SortFindings(health.findings);
  DD_ASSIGN_OR_RETURN(const bool takes_busy, LeaveOutEarlierWork(health.findings, built));
  for (Finding& f : health.findings) {
    if (f.kind != FindingKind::kOpStalls || f.about != About::kStep) continue;
    if (!health.stalls.holds_operators()) continue;
    f.text += kHeldUpStays;
  }
  TakeOut(health.stalls.all, built.graph);
  PlayLoaderWorkers(built.graph);
  if (!health.stalls.all.empty() || takes_busy) {
    DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(built.graph));
    const std::string left_out = LeaveOutRestOfEvents(health.stalls.all, timeline, built.graph);
    health.steady = StepTime(built.graph, timeline);
    replay.steady = health.steady;
    // The first of both, which are sorted by what they take.
    for (Finding& f : health.findings) {
      const bool before = takes_busy && f.kind == FindingKind::kCutStep;
      const bool holds = f.kind == FindingKind::kOpStalls && f.about == About::kStep &&
                         !health.stalls.holds_operators();
      if (!before && !holds && !TellsOfOneTime(f)) continue;
      // What it may take is what is told.
      if (before) f.text.resize(std::min(f.text.find("; where steps follow"), f.text.size()));
      f.text = WithBoth(f, replay.measured, health.steady) + left_out;
      break;
    }
  }
  DD_RETURN_IF_ERROR(TakeWhatItCosts(health.stalls.waits, built.graph));
  if (!health.stalls.waits.empty()) {
    DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(built.graph));
    KeepAsWaits(health.stalls.waits, built.graph, &timeline);
  }
  if (health.stalls.no_step) {
    const Finding& f = health.findings.front();
    // Of what is no step.
    replay.unexplained.reset();
    replay.repeated.reset();
    replay.crossed.reset();
    replay.no_step = MakeStatus(absl::StatusCode::kFailedPrecondition,
                                {.code = "E0607",
                                 .what = "this recording holds no step to predict anything of",
                                 .where = f.where,
                                 .why = f.text,
                                 .fix = f.fix});
  }
  if (replay.no_step.ok()) replay.no_step = HaveTime(built.graph);
  TellDoubts(health.findings, replay);
  return health;
}

std::string DoubtOf(const std::vector<Finding>& findings) {
  for (const Finding& f : findings) {
    switch (f.kind) {
      case FindingKind::kNoWaits:
      case FindingKind::kNoOperators:
      case FindingKind::kPartialGpu:
      case FindingKind::kTooFast:
      case FindingKind::kUnits:
      case FindingKind::kLost:
      case FindingKind::kQueue:
      case FindingKind::kNoTime:
      case FindingKind::kTwice:
      case FindingKind::kWrongLaunch:
      case FindingKind::kOther:
        return f.text;
      default:
        break;
    }
    if (f.kind == FindingKind::kOtherGpu && f.share > 0) return f.text;
    const bool rules = f.kind == FindingKind::kClocks || f.kind == FindingKind::kUnexplained;
    if (rules && f.share > kMostWithoutRule) return f.text;
    const bool few_waits = f.kind == FindingKind::kLoader && f.about == About::kPredictions;
    if (few_waits && f.share > kMostFewWaits) return f.text;
    if (f.kind == FindingKind::kNoLaunches && f.share > kMostUnlaunched) return f.text;
    if (f.kind == FindingKind::kUnrecorded && f.share > kMostGuessed) {
      return fmt::format("{} of the time is GPU work that was not recorded",
                         FormatPercent(f.share, 0));
    }
    if (f.about != About::kStep) continue;
    switch (f.kind) {
      case FindingKind::kNoStep:
      case FindingKind::kOneTime:
        return fmt::format("{} of the recording happens once and was taken out",
                           FormatPercent(f.share, 0));
      default:
        return f.text;
    }
  }
  return "";
}

std::string CautionOf(const std::vector<Finding>& findings) {
  const auto first =
      std::ranges::find(findings, About::kPredictions, [](const Finding& f) { return f.about; });
  return first == findings.end() ? "" : first->text;
}

}  // namespace daydream
