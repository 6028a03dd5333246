#include <algorithm>

#include "tools/output/advise_output.h"

namespace daydream {

absl::StatusOr<AdviseReport> AdviseOn(const std::string& path, const Inputs& in,
                                      const Candidates& candidates, const Budget& budget,
                                      bool per_example, Session& session) {
  AdviseReport report;
  report.path = path;
  report.headline = Headline(*in.trace, in.built);
  report.trace = in.trace.get();
  report.build = &in.built.report;
  report.findings = in.findings;
  report.open = candidates.open;
  report.over_budget = candidates.over_budget;
  // Steps that do more work are no longer for it.
  report.per_example =
      per_example ||
      std::any_of(candidates.options.begin(), candidates.options.end(), [](const Application& a) {
        return a.transform->name == "batch" || a.transform->name == "accumulate";
      });
  const AdviseOptions options{
      .per_example = report.per_example,
      .true_step = in.true_step.has_value() ? &*in.true_step : nullptr,
      .ease =
          [](const Application& a, const Changes& changes) {
            const std::string effort = EffortOf(a.transform->advice, changes);
            Advice advice = a.transform->advice;
            advice.effort = effort;
            return EaseOf(advice);
          },
      .effort = [](const Application& a,
                   const Changes& c) { return LinesOf(EffortOf(a.transform->advice, c)); },
      .budget = budget.lines,
      .jobs = session.jobs(),
      .progress =
          [&](size_t done, size_t total) {
            session.Progress("trying", static_cast<double>(done) / static_cast<double>(total));
          }};
  DD_ASSIGN_OR_RETURN(report.advised,
                      Advise(in.built, in.replay, candidates.options, candidates.limits, options));
  return report;
}

}  // namespace daydream
