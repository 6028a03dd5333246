#include <algorithm>

#include "report/questions/joint_advise.h"
#include "tools/output/advise_output.h"

namespace daydream {
namespace {

// What is asked, and what is left out of that.
AdviseReport ReportFor(const std::string& path, const Candidates& candidates, bool per_example) {
  AdviseReport report;
  report.path = path;
  report.open = candidates.open;
  report.over_budget = candidates.over_budget;
  // Steps that do more work are no longer for it.
  report.per_example =
      per_example ||
      std::any_of(candidates.options.begin(), candidates.options.end(), [](const Application& a) {
        return a.transform->name == "batch" || a.transform->name == "accumulate";
      });
  return report;
}

std::string_view NameOf(AdviseStage stage) {
  constexpr std::string_view kNames[] = {"playing the step", "trying options",
                                         "looking for the best set", "finding reasons"};
  static_assert(std::size(kNames) == static_cast<size_t>(AdviseStage::kReasons) + 1);
  return kNames[static_cast<size_t>(stage)];
}

AdviseOptions OptionsFor(const AdviseReport& report, const Budget& budget, Session& session,
                         InterruptNote* note) {
  return {.per_example = report.per_example,
          .ease =
              [](const Application& a, const Changes& changes) {
                const std::string effort = EffortOf(a.transform->advice, changes);
                Advice advice = AdviceFor(a.transform->advice, changes);
                advice.effort = effort;
                return EaseOf(advice);
              },
          .effort = [](const Application& a,
                       const Changes& c) { return LinesOf(EffortOf(a.transform->advice, c)); },
          .budget = budget.lines,
          .jobs = session.jobs(),
          .progress =
              [&session, note](AdviseStage stage, size_t done, size_t total) {
                if (note != nullptr && stage == AdviseStage::kOptions) note->Done(done, total);
                session.Progress(NameOf(stage), done, total);
              },
          .stopped = [note] { return note != nullptr && note->stopped(); }};
}

}  // namespace

absl::StatusOr<AdviseReport> AdviseOn(const std::string& path, const Inputs& in,
                                      const Candidates& candidates, const Budget& budget,
                                      bool per_example, Session& session, size_t explained,
                                      InterruptNote* note) {
  AdviseReport report = ReportFor(path, candidates, per_example);
  report.headline = Headline(*in.trace, in.built);
  report.trace = in.trace.get();
  report.build = &in.built.report;
  report.findings = in.findings;
  AdviseOptions options = OptionsFor(report, budget, session, note);
  options.explained = explained;
  options.true_step = in.true_step.has_value() ? &*in.true_step : nullptr;
  DD_ASSIGN_OR_RETURN(report.advised,
                      Advise(in.built, in.replay, candidates.options, candidates.limits, options));
  return report;
}

absl::StatusOr<AdviseReport> AdviseOnRanks(const std::string& path, const JointReport& ranks,
                                           const Candidates& candidates, const Budget& budget,
                                           Session& session, InterruptNote* note) {
  const JointRun& run = ranks.in->run;
  AdviseReport report = ReportFor(path, candidates, false);
  report.ranks = &ranks;
  report.trace = run.traces.front().get();
  report.build = &run.built.front().report;
  report.findings = ranks.findings;
  DD_ASSIGN_OR_RETURN(std::vector<Application> options, OptionsOfRanks(run));
  std::erase_if(options, [&](const Application& a) {
    return !OverBudget(budget, a.transform->advice).empty();
  });
  options.insert(options.end(), candidates.options.begin(), candidates.options.end());
  report.advised = AdviseRanks(run, ranks.baseline, options, candidates.limits,
                               OptionsFor(report, budget, session, note));
  if (report.advised.interrupted) return report;
  DD_ASSIGN_OR_RETURN(report.advised.mended, SlowestMended(run, ranks.baseline));
  return report;
}

Exit EndOf(const Advised& a, Session& session) {
  if (!a.interrupted) return Exit::kOk;
  session.Warn({.what = fmt::format("interrupted: {}", MissingOf(a)),
                .effect = "the result holds the options that were tried"});
  return Exit::kInterrupted;
}

}  // namespace daydream
