#include "report/intervals.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

double AsDouble(Duration d) { return static_cast<double>(d.ns); }

void SetConfidence(Prediction& p, const ReplayCheck& replay, double width) {
  double error = std::fabs(replay.error());
  double typical = std::fabs(replay.typical_error().value_or(0));
  auto percent = [](double share) { return fmt::format("{:.1f} %", share * 100); };
  p.confidence = Confidence::kLow;
  if (error > 0.03) {
    p.why = fmt::format("the replay is off by {}", percent(error));
  } else if (typical > 0.10) {
    p.why = fmt::format("with typical lags the replay is off by {}", percent(typical));
  } else if (width > 0.30) {
    p.why = fmt::format("the interval is {} of the step", percent(width));
  } else if (replay.steps < 2) {
    p.why = "one step was recorded: nothing says how much steps differ";
  } else if (!p.changes.warnings.empty()) {
    p.why = p.changes.warnings.front();
  } else if (error <= 0.01 && typical <= 0.03 && width <= 0.05 && p.speedup > 1 / 1.2 &&
             p.speedup < 1.25) {
    p.confidence = Confidence::kHigh;
    p.why =
        fmt::format("replay off by {}, interval {} of the step", percent(error), percent(width));
  } else {
    p.confidence = Confidence::kMedium;
    p.why = fmt::format("replay off by {}, {} with typical lags, interval {} of the step, {:.2f}x",
                        percent(error), percent(typical), percent(width), p.speedup);
  }
}

}  // namespace

void SetInterval(Prediction& p, const ReplayCheck& replay, std::span<const ParamEnds> params) {
  double step = AsDouble(p.step);
  double rules = std::max(std::fabs(replay.error()), std::fabs(replay.typical_error().value_or(0)));
  double steps = static_cast<double>(std::max<size_t>(replay.steps, 1));
  double spread = 1.645 * 1.2533 * replay.spread() / std::sqrt(steps);
  double both = step * step * (rules * rules + spread * spread);
  double up = both, down = both;
  for (const ParamEnds& ends : params) {
    double a = AsDouble(ends.at_low - p.step), b = AsDouble(ends.at_high - p.step);
    double rise = std::max({a, b, 0.0}), fall = std::min({a, b, 0.0});
    up += rise * rise;
    down += fall * fall;
  }
  p.low = std::max(Duration(), p.step - Duration::FromDouble(std::sqrt(down)));
  p.high = p.step + Duration::FromDouble(std::sqrt(up));
  SetConfidence(p, replay, step > 0 ? AsDouble(*p.high - *p.low) / step : 0);
}

}  // namespace daydream
