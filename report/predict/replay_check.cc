#include <algorithm>
#include <cmath>

#include "report/predict/what_if.h"
#include "report/windows.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// As in StepTime(): the mean of the two middle values of an even number.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Duration Median(const std::vector<Duration>& values) {
  std::vector<double> ns;
  for (Duration d : values) ns.push_back(static_cast<double>(d.ns));
  return Duration::FromDouble(Median(std::move(ns)));
}

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
  return Median(std::move(errors));
}

double ReplayCheck::spread() const {
  if (measured_steps.size() < 2 || measured.ns == 0) return 0;
  std::vector<double> deviations;
  for (Duration d : measured_steps) {
    deviations.push_back(std::fabs(static_cast<double>(d.ns - measured.ns)));
  }
  // 1.4826 makes the median absolute deviation of a normal distribution its standard deviation.
  return 1.4826 * Median(std::move(deviations)) / static_cast<double>(measured.ns);
}

Duration MedianOf(const std::vector<Duration>& durations) { return Median(durations); }

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
  check.measured = Median(check.measured_steps);
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
