#include "report/questions/diff.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/median.h"
#include "report/predict/intervals.h"
#include "report/windows.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

struct Moments {
  double n = 0, mean = 0, variance = 0;
};

Moments MomentsOf(std::span<const double> values) {
  Moments m{.n = static_cast<double>(values.size())};
  for (double v : values) m.mean += v / m.n;
  for (double v : values) m.variance += (v - m.mean) * (v - m.mean);
  if (values.size() > 1) m.variance /= m.n - 1;
  return m;
}

// Regularised incomplete beta function I_x(a, b) by Lentz's continued fraction
// (Numerical Recipes, section 6.4; converges in a few dozen terms for these arguments).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kGoodEnough = 1e-14;
  auto away = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m <= 300; ++m) {
    double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    h *= d * c;
    double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    h *= d * c;
    if (std::fabs(d * c - 1) < kGoodEnough) break;
  }
  return h;
}

double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) +
                          b * std::log(1 - x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

// GPU time by group, one value for every counted step.
using Samples = std::map<std::string, std::vector<double>>;

Samples Collect(const Graph& graph, GroupBy by, size_t& steps) {
  std::vector<size_t> counted = CountedSteps(graph);
  bool whole = counted.empty();
  steps = whole ? 1 : counted.size();
  std::vector<size_t> place(graph.steps().size(), SIZE_MAX);
  for (size_t i = 0; i < counted.size(); ++i) place[counted[i]] = i;
  Samples samples;
  Grouper grouper(graph, by);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || !IsGpu(t.kind)) continue;
    size_t at = whole ? 0 : t.step < place.size() ? place[t.step] : SIZE_MAX;
    if (at == SIZE_MAX) continue;
    auto& values = samples[grouper.Of(TaskId(i))];
    values.resize(steps);
    values[at] += static_cast<double>(t.duration.ns);
  }
  return samples;
}

Duration Mean(std::span<const double> values) {
  return values.empty() ? Duration() : Duration::FromDouble(MomentsOf(values).mean);
}

std::vector<double> AsDoubles(const std::vector<Duration>& durations) {
  std::vector<double> out;
  out.reserve(durations.size());
  for (Duration d : durations) out.push_back(static_cast<double>(d.ns));
  return out;
}

}  // namespace

Compared AsRecorded(const BuiltGraph& built) {
  return {.built = built, .periods = MeasuredSteps(built), .error = {}};
}

absl::StatusOr<Compared> AsSteady(const BuiltGraph& built, const ReplayCheck& replay) {
  Compared out = AsRecorded(built);
  out.periods = replay.measured_steps;
  const bool changed = replay.unrecorded.has_value() || replay.steady.has_value();
  if (!changed || !replay.no_step.ok()) return out;
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(built.graph));
  const std::vector<Duration> now = CountedPeriods(built.graph, timeline);
  for (size_t i = 0; i < std::min(now.size(), out.periods.size()); ++i) {
    out.periods[i] -= replay.simulated_steps[i] - now[i];
  }
  if (!replay.unrecorded) return out;
  // The range is of two standard errors to either side.
  out.error = (replay.unrecorded->longest - replay.unrecorded->shortest).Scaled(0.25);
  return out;
}

double WelchP(std::span<const double> a, std::span<const double> b, double shared) {
  if (a.size() < 2 || b.size() < 2) return 1;
  Moments x = MomentsOf(a), y = MomentsOf(b);
  double u = x.variance / x.n, v = y.variance / y.n;
  const double all = u + v + shared;
  if (all <= 0) return x.mean == y.mean ? 1 : 0;
  double t = (x.mean - y.mean) / std::sqrt(all);
  // Welch-Satterthwaite; what is known has no end of degrees of freedom.
  const double estimated = u * u / (x.n - 1) + v * v / (y.n - 1);
  constexpr double kMost = 1e6;
  const double freedom = estimated > 0 ? std::min(kMost, all * all / estimated) : kMost;
  return IncompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

Diff Compare(const Compared& before, const Compared& after, GroupBy by) {
  Diff diff;
  const double shared = std::pow(AsDouble(before.error), 2) + std::pow(AsDouble(after.error), 2);
  diff.step = {.name = "step",
               .before = MeanOf(before.periods),
               .after = MeanOf(after.periods),
               .p = WelchP(AsDoubles(before.periods), AsDoubles(after.periods), shared)};
  Samples x = Collect(before.built.graph, by, diff.steps_before);
  Samples y = Collect(after.built.graph, by, diff.steps_after);
  Samples all = x;
  all.insert(y.begin(), y.end());
  for (const auto& [name, unused] : all) {
    auto& was = x[name];
    auto& is = y[name];
    DiffRow row{.name = name,
                .before = Mean(was),
                .after = Mean(is),
                .added = was.empty(),
                .gone = is.empty()};
    was.resize(diff.steps_before);
    is.resize(diff.steps_after);
    row.p = WelchP(was, is);
    diff.rows.push_back(std::move(row));
  }
  std::stable_sort(diff.rows.begin(), diff.rows.end(), [](const DiffRow& p, const DiffRow& q) {
    return std::llabs((p.after - p.before).ns) > std::llabs((q.after - q.before).ns);
  });
  return diff;
}

}  // namespace daydream
