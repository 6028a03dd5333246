#include "report/questions/joint.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/median.h"
#include "report/parallel.h"
#include "report/predict/error_kind.h"
#include "report/predict/merge_changes.h"
#include "report/predict/residuals.h"
#include "report/predict/settings.h"
#include "report/questions/common_steps.h"
#include "report/questions/joint_added.h"
#include "report/questions/joint_causes.h"
#include "report/questions/joint_unrecorded.h"
#include "report/questions/longer_than_elsewhere.h"
#include "trace/join/ranks.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"

namespace daydream {
namespace {

// Two cycles closer than this bound the step together.
constexpr double kSameCycle = 0.001;
// A replay further off makes its predictions doubtful, as that of one rank does.
constexpr double kReplaysWell = 0.03;
// Chosen: more than one in twenty is no mere edge of a window. Who is there goes on without the one
// that lacks, or waits for it as the recording did, whatever is changed.
constexpr double kLackingShare = 0.05;
// Nothing was checked on several programs of many ranks: a wider interval decides nothing.
constexpr double kWide = 0.30;
// Chosen: the middle of so many draws is a fifth as far off as one.
constexpr size_t kSpeedDraws = 15;

absl::Status Deadlock(const MatchedRanks& matched) {
  std::string where;
  for (const RankProblem& p : matched.problems) {
    if (p.kind != ProblemKind::kDeadlock || where.size() > 400) continue;
    where += (where.empty() ? "" : "; ") + p.message;
  }
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0434",
                     .what = "two ranks issue two collectives in opposite order",
                     .where = where,
                     .why = "each would wait for the other for ever, so these are not the "
                            "recordings of one run, or they were changed",
                     .fix = "name the traces of one run, of the same steps"});
}

// The peers of one rank alone are Ghosts.
absl::Status NothingInCommon(size_t ranks) {
  const bool one = ranks == 1;
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0435",
       .what = one ? "no collective in this trace waits for another rank"
                   : "no two of these ranks have a collective in common",
       .where = one ? "" : fmt::format("{} traces", ranks),
       .fix = one ? "the folder with the traces of all ranks; of one GPU, daydream scale tells "
                    "what many would do"
                  : "the traces of one run, of the same steps; or one with --rank R"});
}

// The graphs of the traces, and which of their collectives are one. E0434.
absl::StatusOr<JointRun> MatchTraces(std::vector<std::shared_ptr<const Trace>> traces,
                                     unsigned jobs) {
  JointRun run;
  run.traces = std::move(traces);
  std::vector<absl::StatusOr<BuiltGraph>> built(run.traces.size(), absl::UnknownError(""));
  run.ranks.resize(run.traces.size());
  run.stalls.resize(run.traces.size());
  ForEachParallel(run.traces.size(), jobs, [&](size_t r) {
    built[r] = BuildGraph(run.traces[r]);
    if (!built[r].ok()) return;
    Graph& graph = built[r]->graph;
    run.ranks[r] = DescribeCollectives(graph, run.traces[r]->ranks[0]);
    run.stalls[r] = FindStalls(graph);
    AddLongerThanElsewhere(graph, run.stalls[r]);
  });
  for (auto& b : built) {
    if (!b.ok()) return b.status();
    run.built.push_back(*std::move(b));
  }
  run.matched = MatchCollectives(run.ranks);
  if (run.matched.deadlock()) return Deadlock(run.matched);
  return run;
}

// What all ranks recorded, where some recorded more steps: `begins` follows.
absl::Status TakeCommonSteps(unsigned jobs, std::vector<Duration>& begins, JointRun& run) {
  const std::optional<CommonSteps> common = FindCommonSteps(run.built, run.ranks, run.matched);
  if (!common) return absl::OkStatus();
  std::vector<std::shared_ptr<const Trace>> traces = run.traces;
  for (size_t r = 0; r < traces.size(); ++r) {
    const CommonPart& part = common->parts[r];
    if (part.whole()) continue;
    DD_ASSIGN_OR_RETURN(traces[r], TakeTime(*run.traces[r], part.begin, part.end,
                                            "not all ranks recorded these steps"));
    begins[r] += Duration{traces[r]->clock_origin_ns - run.traces[r]->clock_origin_ns};
  }
  DD_ASSIGN_OR_RETURN(run, MatchTraces(std::move(traces), jobs));
  run.matched.problems.insert(run.matched.problems.begin(), common->problem);
  return absl::OkStatus();
}

// The graphs that stand behind a graph that was not edited.
std::vector<const Graph*> Built(const JointRun& run) {
  std::vector<const Graph*> graphs;
  for (const BuiltGraph& b : run.built) graphs.push_back(&b.graph);
  return graphs;
}

// What edits made of a transfer: the graph says it of the task, else its length tells.
Duration Edited(const Graph& before, const Graph& after, TaskId t) {
  const Duration was = before.Transfer(t), is = after.Transfer(t);
  if (is != was) return is;
  const Duration whole = before.task(t).duration, now = after.task(t).duration;
  if (now == whole || whole <= Duration{}) return was;
  return was.Scaled(static_cast<double>(now.ns) / static_cast<double>(whole.ns));
}

// Edits see what a transfer takes by its class, not what one rank alone can tell of it.
void TellTransfers(JointRun& run) {
  for (size_t i = 0; i < run.matched.rows.size(); ++i) {
    const Duration transfer = run.meetings.classes[run.meetings.rows[i].class_of].transfer;
    for (const RowMember& m : run.matched.rows[i].members) {
      run.built[m.rank].graph.SetTransfer(run.ranks[m.rank].all[m.collective].task, transfer);
    }
  }
}

void FollowEdits(const JointRun& run, std::span<const Graph* const> graphs,
                 std::vector<Duration>& transfer) {
  for (size_t i = 0; i < transfer.size(); ++i) {
    std::vector<int64_t> edited;
    for (const RowMember& m : run.matched.rows[i].members) {
      const TaskId t = run.ranks[m.rank].all[m.collective].task;
      edited.push_back(Edited(run.built[m.rank].graph, *graphs[m.rank], t).ns);
    }
    if (!edited.empty()) transfer[i] = Duration{Median(edited)};
  }
}

JointCheck CheckJoint(const JointRun& run, const JointGraph& joint, const JointReplay& replay) {
  JointCheck check;
  double off = 0, all = 0;
  for (size_t i = 0; i < run.matched.rows.size(); ++i) {
    if (!joint.meeting[i].valid()) continue;
    for (const RowMember& m : run.matched.rows[i].members) {
      const RankCollective& c = run.ranks[m.rank].all[m.collective];
      const TaskId t = joint.task[m.rank][c.task.index()];
      const TaskId came = joint.arrival[m.rank][c.task.index()];
      if (!came.valid()) continue;
      const Duration replayed =
          replay.timeline.end[t.index()] - replay.timeline.start[came.index()];
      off += std::abs(static_cast<double>((replayed - (c.end - c.start)).ns));
      all += static_cast<double>((c.end - c.start).ns);
    }
  }
  check.duration_error = all > 0 ? off / all : 0;
  for (size_t r = 0; r < run.built.size(); ++r) {
    const Graph& graph = run.built[r].graph;
    const Trace& trace = *run.traces[r];
    Instant first{std::numeric_limits<int64_t>::max()}, last;
    for (const Task& task : graph.tasks()) {
      first = std::min(first, task.recorded_start);
      last = std::max(last, task.recorded_start + task.duration);
      if (task.event < trace.rows()) last = std::max(last, trace.End(task.event));
    }
    if (last <= first) continue;
    const double span = static_cast<double>((last - first).ns);
    check.span_error = std::max(check.span_error,
                                std::abs(static_cast<double>(replay.ranks[r].span.ns) / span - 1));
  }
  return check;
}

std::string JointBoundBy(const JointRun& run, const JointAnswer& a) {
  const size_t slowest = SlowestAlone(a.replay);
  const double own = static_cast<double>(a.replay.ranks[slowest].own_cycle.ns);
  const double period = static_cast<double>(a.replay.period.ns);
  if (period <= own * (1 + kSameCycle))
    return fmt::format("own cycle of rank {}", run.Number(slowest));
  return "waits of ranks for one another";
}

// 90 %: what the rules of the joint replay are off by, how much the same program differs from run
// to run, and what is known of the errors of each model.
void SetJointInterval(const JointRun& run, const JointAnswer& baseline,
                      std::span<const Application> scenario, double spread, JointPrediction& p) {
  constexpr double kNinety = 1.645;
  const auto before = static_cast<double>(baseline.step.ns);
  const auto after = static_cast<double>(p.answer.step.ns);
  if (before <= 0 || after <= 0) return;
  Duration transfer, span;
  for (const RankAccount& a : baseline.replay.ranks) transfer += a.transfer, span += a.span;
  const double share =
      span > Duration{} ? static_cast<double>(transfer.ns) / static_cast<double>(span.ns) : 0;
  double variance = std::pow(baseline.check.span_error / kNinety, 2) +
                    std::pow(baseline.check.duration_error * share / kNinety, 2) +
                    std::pow(kRunToRun, 2) + std::pow(spread, 2) +
                    std::pow(UnsureShare(run) / kNinety, 2);
  for (const Application& a : scenario) {
    if (a.transform->stated_by_user) continue;
    const ErrorKind kind = ErrorKindOf(a, run.built.front().graph, p.changes.terms);
    const double sigma = ModelErrorOf(kind.main()).sigma;
    variance += std::pow(sigma * DoseOf(kind.main(), before, after), 2);
  }
  const double wide = 1 + kNinety * std::sqrt(variance);
  p.low = p.answer.step.Scaled(1 / wide);
  p.high = p.answer.step.Scaled(wide);
}

// As for one rank (report/predict/intervals.cc), by what is known of ranks together.
void SetJointConfidence(const JointRun& run, const JointAnswer& baseline,
                        std::span<const Application> scenario, JointPrediction& p) {
  LeastChecked checked;
  for (const Application& a : scenario) {
    if (a.transform->stated_by_user) continue;
    checked.Add(ErrorKindOf(a, run.built.front().graph, p.changes.terms).main(), {});
  }
  const HeldRows& held = checked.held;
  const double step = static_cast<double>(std::max<int64_t>(p.answer.step.ns, 1));
  const double width = p.low ? static_cast<double>((*p.high - *p.low).ns) / step : 0;
  const auto lacking = static_cast<double>(RowsThatLackARecordedRank(run.matched));
  p.confidence = Confidence::kLow;
  if (p.bound) {
    p.why = "a limit, not a prediction";
  } else if (const std::string doubt = DoubtOf(run.findings); !doubt.empty()) {
    p.why = doubt;
    p.raise = "what the finding above says";
  } else if (baseline.check.span_error > kReplaysWell) {
    p.why = fmt::format("the length of one rank is replayed {:.1f} % off",
                        100 * baseline.check.span_error);
    p.raise = "a longer recording of all ranks";
  } else if (lacking > kLackingShare * static_cast<double>(run.matched.rows.size())) {
    p.why = fmt::format("{:.0f} of {} collectives lack a rank that was recorded", lacking,
                        run.matched.rows.size());
    p.raise = "recordings of the same steps of all ranks";
  } else if (!p.changes.warnings.empty()) {
    p.why = p.changes.warnings.front();
  } else if (held.groups > 0 && held.share < kHeldWell) {
    p.why = fmt::format("ranges of \"{}\" held {} of {} measured rows that they did not know",
                        checked.kind, held.inside, held.rows);
  } else if (width > kWide) {
    p.why = fmt::format("the interval is {:.0f} % of the step", 100 * width);
  } else {
    p.confidence = Confidence::kMedium;
    p.why = fmt::format("lengths of ranks are replayed {:.2f} % off or better",
                        100 * baseline.check.span_error);
  }
}

// Why an option changes no rank, from what it says of the first that was asked.
absl::Status OnNoRank(const JointRun& run, size_t rank, const absl::Status& status) {
  Diagnostic d = DiagnosticOf(status);
  d.why = fmt::format("it changes none of the {} recorded ranks; on rank {}: {}", run.built.size(),
                      run.Number(rank), d.why.empty() ? "nothing fits" : d.why);
  return MakeStatus(status.code(), d);
}

// The ranks of `on` with these options, and what the run takes then; `p` is told what changed.
// E0601 where no rank has anything to change.
absl::StatusOr<JointAnswer> PlayEdited(const JointRun& run, std::span<const Application> scenario,
                                       std::span<const int32_t> on, JointPrediction& p) {
  std::vector<Graph> graphs;
  absl::Status nothing;
  std::set<std::string> done;
  p.edited.clear(), p.left_out.clear();
  for (size_t r = 0; r < run.built.size(); ++r) {
    graphs.push_back(run.built[r].graph);
    if (!on.empty() && std::find(on.begin(), on.end(), run.Number(r)) == on.end()) continue;
    Changes changes;
    const absl::Status applied =
        ApplyAll(scenario, graphs.back(), [&](const Application& one, Applied* a) -> absl::Status {
          if (a == nullptr) return absl::OkStatus();
          Merge(changes, a->changes);
          done.insert(SpelledAs(one));
          return absl::OkStatus();
        });
    if (applied.ok()) {
      if (p.edited.empty()) p.changes = std::move(changes);
      p.edited.push_back(r);
    } else if (DiagnosticOf(applied).code == "E0601") {
      if (nothing.ok()) nothing = OnNoRank(run, r, applied);  // it may be about one rank only
    } else {
      return applied;
    }
  }
  if (p.edited.empty()) return nothing;
  for (const Application& a : scenario) {
    if (!done.contains(SpelledAs(a))) p.left_out.push_back(SpelledAs(a));
  }
  std::vector<const Graph*> pointers;
  pointers.reserve(graphs.size());
  for (const Graph& g : graphs) pointers.push_back(&g);
  return PlayJoint(run, TransferFrom::kClass, pointers);
}

bool IsDrawn(const Application& a) { return a.transform == &kJitter && a.params["ranks"] <= 1; }

// The scenario with one draw of many of each speed.
absl::StatusOr<std::vector<Application>> DrawSpeeds(std::span<const Application> scenario,
                                                    size_t draw) {
  constexpr double kSeeds = 1e9;
  std::vector<Application> drawn(scenario.begin(), scenario.end());
  for (Application& a : drawn) {
    if (!IsDrawn(a)) continue;
    const double seed = a.params["seed"] * kSpeedDraws + static_cast<double>(draw);
    DD_ASSIGN_OR_RETURN(a.params,
                        BindParams("jitter", a.transform->params,
                                   std::vector<std::pair<std::string, std::string>>{
                                       {"sd", fmt::format("{:.17g}%", 100 * a.params["sd"])},
                                       {"seed", fmt::format("{:.0f}", std::fmod(seed, kSeeds))}}));
  }
  return drawn;
}

// The draw that gives the middle step, in its place, and how far the steps are apart (relative
// standard deviation, from the middle two thirds of them).
struct MiddleDraw {
  std::vector<Application> scenario;
  double spread = 0;
};
absl::StatusOr<MiddleDraw> ChooseDraw(const JointRun& run, std::span<const Application> scenario,
                                      std::span<const int32_t> on) {
  MiddleDraw middle{{scenario.begin(), scenario.end()}, 0};
  if (std::none_of(scenario.begin(), scenario.end(), IsDrawn)) return middle;
  std::vector<std::pair<Duration, size_t>> steps;
  for (size_t draw = 0; draw < kSpeedDraws; ++draw) {
    DD_ASSIGN_OR_RETURN(const std::vector<Application> drawn, DrawSpeeds(scenario, draw));
    JointPrediction unused;
    DD_ASSIGN_OR_RETURN(const JointAnswer answer, PlayEdited(run, drawn, on, unused));
    steps.emplace_back(answer.step, draw);
  }
  std::sort(steps.begin(), steps.end());
  const auto at = [&](size_t i) { return static_cast<double>(steps[i].first.ns); };
  if (at(kSpeedDraws / 2) > 0) {
    middle.spread =
        (at(kSpeedDraws - 1 - kSpeedDraws / 6) - at(kSpeedDraws / 6)) / (2 * at(kSpeedDraws / 2));
  }
  DD_ASSIGN_OR_RETURN(middle.scenario, DrawSpeeds(scenario, steps[kSpeedDraws / 2].second));
  return middle;
}

}  // namespace

int32_t JointRun::Number(size_t rank) const {
  const int32_t number = ranks[rank].rank.rank;
  return number >= 0 ? number : static_cast<int32_t>(rank);
}

size_t SlowestAlone(const JointReplay& replay) {
  const auto slowest = std::ranges::max_element(replay.ranks, {}, &RankAccount::own_cycle);
  return static_cast<size_t>(slowest - replay.ranks.begin());
}

absl::StatusOr<JointRun> MakeJointRun(std::vector<std::shared_ptr<const Trace>> traces,
                                      std::span<const Duration> given, AlignClocks align,
                                      unsigned jobs) {
  DD_ASSIGN_OR_RETURN(JointRun run, MatchTraces(std::move(traces), jobs));
  std::vector<Duration> begins(given.begin(), given.end());
  DD_RETURN_IF_ERROR(TakeCommonSteps(jobs, begins, run));
  if (run.traces.size() > 1 ? !run.matched.joint() : run.matched.rows.empty()) {
    return NothingInCommon(run.traces.size());
  }
  run.begin = begins;
  if (align == AlignClocks::kEnds) {
    run.clocks = FindClockShifts(run.ranks, run.matched, begins);
    run.begin = run.clocks.shift;
  }
  for (size_t r = 0; r < run.begin.size(); ++r) run.added.push_back(run.begin[r] - begins[r]);
  const Duration first = *std::min_element(run.begin.begin(), run.begin.end());
  for (Duration& d : run.begin) d -= first;
  run.meetings = FindMeetings(run.ranks, run.matched, run.begin);
  TellTransfers(run);
  if (run.meetings.early > 0) {
    run.matched.problems.push_back(
        {ProblemKind::kClock,
         {},
         fmt::format("{} ends of collectives lie before the last arrival: a clock is off, or they "
                     "do not wait for all",
                     run.meetings.early)});
  }
  return run;
}

absl::StatusOr<JointAnswer> PlayJoint(const JointRun& run, TransferFrom from,
                                      std::span<const Graph* const> edited, unsigned jobs) {
  const std::vector<const Graph*> built = Built(run);
  const std::span<const Graph* const> graphs = edited.empty() ? built : edited;
  std::vector<Duration> transfer = TransfersOf(run.meetings, from);
  if (!edited.empty()) FollowEdits(run, graphs, transfer);
  std::optional<AddedRows> more;
  if (!edited.empty()) more = MatchAdded(run, graphs, transfer);
  const JointGraph joint =
      more ? JoinGraphs(graphs, more->ranks, more->matched, more->meetings, more->transfer,
                        run.begin)
           : JoinGraphs(graphs, run.ranks, run.matched, run.meetings, transfer, run.begin);
  JointAnswer answer;
  const ForEachRank each = [jobs](size_t n, const std::function<void(size_t)>& work) {
    ForEachParallel(n, jobs, work);
  };
  DD_ASSIGN_OR_RETURN(answer.replay, ReplayRanks(joint, graphs, each));
  answer.window = answer.replay.window;
  answer.step = RecordedStepTime(joint, graphs, answer.replay.timeline);
  if (answer.step == Duration{}) {
    answer.step = answer.replay.period;
    answer.repeated = true;
  }
  if (edited.empty()) {
    answer.check = run.unrecorded ? run.unrecorded->check
                   : run.steady   ? run.steady->check
                                  : CheckJoint(run, joint, answer.replay);
  }
  answer.bound_by = JointBoundBy(run, answer);
  return answer;
}

absl::StatusOr<JointStep> StepOnRanks(const JointRun& run,
                                      const std::vector<Application>& scenario) {
  JointPrediction p;
  DD_ASSIGN_OR_RETURN(const JointAnswer answer, PlayEdited(run, scenario, {}, p));
  const double samples = p.changes.samples > 0 ? p.changes.samples : 1;
  return JointStep{answer.step, samples, std::move(p.left_out)};
}

JointPrediction PredictJoint(const JointRun& run, const JointAnswer& baseline,
                             const std::vector<Application>& scenario,
                             std::span<const int32_t> on) {
  JointPrediction p;
  p.name = NameOf(scenario);
  for (const Application& a : scenario) p.opts.push_back(SpelledAs(a));
  const absl::StatusOr<MiddleDraw> drawn = ChooseDraw(run, scenario, on);
  if (!drawn.ok()) {
    p.error = drawn.status();
    return p;
  }
  JointAnswer before = baseline;
  for (size_t n = 1; n <= scenario.size(); ++n) {
    auto answer = PlayEdited(run, std::span(drawn->scenario).first(n), on, p);
    if (!answer.ok()) {
      // An option that changes nothing by itself may be followed by one that does.
      if (n < scenario.size() && DiagnosticOf(answer.status()).code == "E0601") continue;
      p.error = answer.status();
      return p;
    }
    for (CauseShare& c : ShareByRank(run, before, *answer, p.opts[n - 1])) {
      p.causes.push_back(std::move(c));
    }
    before = *std::move(answer);
  }
  MergeShares(p.causes);
  p.answer = std::move(before);
  p.speedup = p.answer.step.ns > 0
                  ? static_cast<double>(baseline.step.ns) / static_cast<double>(p.answer.step.ns)
                  : 1;
  p.bound = std::any_of(scenario.begin(), scenario.end(),
                        [](const Application& a) { return a.transform->bound; });
  if (!p.bound) SetJointInterval(run, baseline, scenario, drawn->spread, p);
  SetJointConfidence(run, baseline, scenario, p);
  if (const double samples = p.changes.samples; samples > 0 && samples != 1) {
    p.changes.notes.push_back(ThroughputNote(samples, p.answer.step, p.speedup * samples));
  }
  return p;
}

}  // namespace daydream
