#include <cmath>

#include "base/median.h"
#include "report/predict/what_if.h"
#include "report/predict/why_it_fails.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// As --max-replay-error is, unless told otherwise.
constexpr double kFails = 0.10;

double Relative(Duration a, Duration b) {
  return b.ns == 0 ? 0 : static_cast<double>(a.ns) / static_cast<double>(b.ns) - 1;
}

}  // namespace

Duration ReplayCheck::step() const {
  if (unrecorded.has_value()) return unrecorded->step;
  return given.value_or(steady.value_or(measured));
}

std::string_view ReplayCheck::step_name() const {
  if (unrecorded.has_value()) return "unrecorded step";
  if (given.has_value()) return "true step";
  return steady.has_value() ? "steady step" : "step";
}

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
  double squares = 0;
  for (Duration d : measured_steps) squares += std::pow(Relative(d, measured), 2);
  return std::sqrt(squares / static_cast<double>(measured_steps.size() - 1));
}

namespace {

struct FailedCheck {
  ReplayCheck::Worst worst;
  std::string_view why;
};

FailedCheck WorstOf(const ReplayCheck& check) {
  FailedCheck found;
  auto ask = [&](double error, std::string_view what, std::string_view why) {
    if (std::fabs(error) <= found.worst.error) return;
    found = {{std::fabs(error), fmt::format("{} {}", what, FormatSignedPercent(error))}, why};
  };
  ask(check.error(), "the unchanged replay is off by",
      "the dependency rules do not explain this trace");
  if (check.unexplained.has_value()) {
    ask(-*check.unexplained, "without delays that no rule explains the step is",
        "what the GPU waited for in these delays is not known");
  }
  // Off by a little, it says how much lags differ. Off by half (chosen; no recording beside the
  // repository is off by a third), the lags are no lags.
  constexpr double kFarOff = 0.5;
  const double typical = check.typical_error().value_or(0);
  if (check.no_step.ok() && std::fabs(typical) > kFarOff) {
    ask(typical, "with typical lags the replay is off by",
        "times between work and what waits for it are no lags: most are far from their median");
  }
  constexpr std::string_view kRepeats =
      "over and over, these steps take another time than in the recording: what each leaves to the "
      "next is not what the dependency rules say, or something else went on";
  if (check.repeated.has_value() && check.repeated->runs.has_value()) {
    const RunsOff& runs = *check.repeated->runs;
    ask(runs.error, fmt::format("{} steps in a row, played by themselves, are off by", runs.steps),
        kRepeats);
  } else if (check.repeated.has_value()) {
    ask(check.repeated->error, "steps played by themselves are off by", kRepeats);
  }
  if (check.crossed.has_value()) {
    ask(check.crossed->error, "steps with the lags of the others are off by",
        "lags, gaps and delays of some steps are not those of the others, and no rule tells why");
  }
  return found;
}

}  // namespace

ReplayCheck::Worst ReplayCheck::worst() const { return WorstOf(*this).worst; }

std::string_view WhyItFails(const ReplayCheck& check) { return WorstOf(check).why; }

ReplayCheck::Worst ReplayCheck::worst_step() const {
  Worst worst;
  const auto ask = [&](const std::optional<StepTest>& test, std::string_view how) {
    if (!test.has_value() || std::fabs(test->worst) <= worst.error) return;
    worst = {std::fabs(test->worst), fmt::format("{} {} is off by {}", test->worst_step, how,
                                                 FormatSignedPercent(test->worst))};
  };
  ask(repeated, "played by itself");
  ask(crossed, "with the lags of the others");
  return worst;
}

std::string ReplayCheck::step_doubt() const {
  const Worst found = worst_step();
  if (found.error <= kFails || !no_step.ok()) return "";
  if (worst().error > kFails) return found.what;
  const bool runs = repeated.has_value() && repeated->runs.has_value();
  return found.what + (runs ? fmt::format(" ({} steps in a row are not)", repeated->runs->steps)
                            : " (the mean of the steps is not)");
}

std::string ReplayCheck::baseline_doubt() const {
  if (!doubt.empty()) return doubt;
  const Worst found = worst();
  return found.error > kFails ? fmt::format("a check of the replay fails: {}", found.what) : "";
}

std::vector<Duration> MeasuredSteps(const BuiltGraph& built) {
  const Graph& graph = built.graph;
  std::vector<Duration> steps;
  for (size_t s : CountedSteps(graph)) steps.push_back(graph.steps()[s].recorded_period);
  if (!steps.empty()) return steps;
  Duration recorded = !graph.steps().empty() ? graph.steps()[0].recorded_period : Duration();
  return {recorded.ns > 0 ? recorded : built.report.window};
}

bool IsWindow(const BuiltGraph& built) {
  const Trace* trace = built.graph.tables().trace.get();
  return trace != nullptr && !trace->provenance.planned &&
         built.report.steps.method == StepMethod::kWindow;
}

absl::StatusOr<ReplayCheck> CheckReplay(const BuiltGraph& built, const BuiltGraph* typical) {
  const Graph& graph = built.graph;
  ReplayCheck check;
  {
    // A plan is for those who ask what would be: nobody may.
    DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(graph, {.once = true}));
    check.simulated_steps = CountedPeriods(graph, timeline);
  }
  check.simulated = MeanOf(check.simulated_steps);
  check.measured_steps = MeasuredSteps(built);
  check.steps = check.measured_steps.size();
  for (size_t s : CountedSteps(graph)) check.step_names.push_back(graph.steps()[s].label);
  check.window = IsWindow(built);
  check.measured = MeanOf(check.measured_steps);
  check.batch = FindBatchSize(graph);
  check.unexplained = UnexplainedShare(graph, check.simulated);
  check.repeated = RepeatTest(graph);
  check.crossed = CrossTest(graph);
  if (typical != nullptr) {
    DD_ASSIGN_OR_RETURN(Timeline blind, Simulate(typical->graph));
    check.typical = StepTime(typical->graph, blind);
  }
  return check;
}

}  // namespace daydream
