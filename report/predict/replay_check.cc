#include <cmath>

#include "base/median.h"
#include "report/predict/what_if.h"
#include "report/windows.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

double Relative(Duration a, Duration b) {
  return b.ns == 0 ? 0 : static_cast<double>(a.ns) / static_cast<double>(b.ns) - 1;
}

}  // namespace

double ReplayCheck::error() const { return Relative(simulated, measured); }

std::optional<double> ReplayCheck::typical_error() const {
  if (!typical.has_value()) return std::nullopt;
  return Relative(*typical, measured);
}

double ReplayCheck::median_step_error() const {
  std::vector<double> errors;
  for (size_t i = 0; i < measured_steps.size(); ++i) {
    errors.push_back(std::fabs(Relative(simulated_steps[i], measured_steps[i])));
  }
  return MeanMedian(std::move(errors));
}

double ReplayCheck::spread() const {
  if (measured_steps.size() < 2 || measured.ns == 0) return 0;
  std::vector<double> deviations;
  for (Duration d : measured_steps) {
    deviations.push_back(std::fabs(static_cast<double>(d.ns - measured.ns)));
  }
  // 1.4826 makes the median absolute deviation of a normal distribution its standard deviation.
  return 1.4826 * MeanMedian(std::move(deviations)) / static_cast<double>(measured.ns);
}

std::vector<Duration> MeasuredSteps(const BuiltGraph& built) {
  const Graph& graph = built.graph;
  std::vector<Duration> steps;
  for (size_t s : CountedSteps(graph)) steps.push_back(graph.steps()[s].recorded_period);
  if (!steps.empty()) return steps;
  Duration recorded = !graph.steps().empty() ? graph.steps()[0].recorded_period : Duration();
  return {recorded.ns > 0 ? recorded : built.report.window};
}

absl::StatusOr<ReplayCheck> CheckReplay(const BuiltGraph& built, const BuiltGraph* typical) {
  const Graph& graph = built.graph;
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(graph));
  ReplayCheck check;
  check.simulated = StepTime(graph, timeline);
  check.measured_steps = MeasuredSteps(built);
  check.steps = check.measured_steps.size();
  check.measured = MeanMedian(check.measured_steps);
  std::vector<Duration> periods = StepPeriods(graph, timeline);
  for (size_t s : CountedSteps(graph)) check.simulated_steps.push_back(periods[s - 1]);
  if (check.simulated_steps.empty()) check.simulated_steps.push_back(check.simulated);
  if (typical != nullptr) {
    DD_ASSIGN_OR_RETURN(Timeline blind, Simulate(typical->graph));
    check.typical = StepTime(typical->graph, blind);
  }
  return check;
}

}  // namespace daydream
