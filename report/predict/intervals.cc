#include "report/predict/intervals.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/median.h"
#include "graph/retimed.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "transforms/analysis/precision.h"
#include "transforms/analysis/roofline_times.h"

namespace daydream {
namespace {

// Fewer measured rows hold or miss by chance.
constexpr size_t kFewRows = 3;
constexpr size_t kDraws = 4096;
// Rows of one group are wrong for one reason: they say nothing of another group.
constexpr size_t kManyGroups = 2;
// Expected errors, as shares of the step (chosen): up to the first the word may be high, above the
// second it is low.
constexpr double kSure = 0.05, kUnsure = 0.15;
// An interval as long as the step itself decides nothing (chosen).
constexpr double kUndecided = 1;
// Where an interval ends further away than so many times the error that is expected, both are said:
// of a normal error it would be 2.1 times (chosen).
constexpr double kFarInterval = 4;
// Chosen: steps that differ by a tenth are alike, and by half they are not.
constexpr double kAlike = 1.1, kUnlike = 1.5;
constexpr size_t kEnoughSteps = 3;
// Chosen: a replay that is off by more, as it is and with typical lags, tells too little.
constexpr double kReplayOff = 0.03, kTypicalOff = 0.10;

// Numbers that are the same with every compiler: the distributions of the standard library are not.
class Draw {
 public:
  explicit Draw(uint64_t seed = 2020) : random_(seed) {}
  double Even() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }
  double Normal() {
    const double length = std::sqrt(-2 * std::log(Even()));
    return length * std::cos(6.283185307179586 * Even());
  }

 private:
  std::mt19937_64 random_;
};

double ParamChange(const ParamEnds& p, double step, double at) {
  const double low = AsDouble(p.at_low) - step, high = AsDouble(p.at_high) - step;
  if (at < p.at) return low * (p.at - at) / p.at;
  return p.at >= 1 ? 0 : high * (at - p.at) / (1 - p.at);
}

// The same by one of kernels, in standard deviations: on a curve through both ends.
double FactorOfKernels(const KernelEnds& ends, double step, double normal) {
  const double slow = std::max(AsDouble(ends.slow) / step, 1.0) - 1;
  const double quick = step / std::clamp(AsDouble(ends.quick), 1.0, step) - 1;
  return Factor(normal / kNinety * (normal >= 0 ? slow : quick));
}

struct Ends {
  double low = 1, high = 1;
};

constexpr size_t kLowRank = kDraws / 20, kHighRank = kDraws - 1 - kDraws / 20;  // of 90 %

// Of shares of a step that is between them.
Ends MiddleNinety(const std::vector<double>& shares, double least) {
  const double low = std::max(Ranked(shares, kLowRank), least);
  return {std::min(low, 1.0), std::max(Ranked(shares, kHighRank), 1.0)};
}

// What is drawn where there are no parameters.
struct Errors {
  std::vector<double> drawn;
  double low, high;  // those in the places that MiddleNinety() looks at
};
const Errors& ErrorsAlone() {
  static const Errors errors = [] {
    Draw draw;
    std::vector<double> drawn(kDraws);
    for (double& error : drawn) error = draw.Normal();
    return Errors{drawn, Ranked(drawn, kLowRank), Ranked(drawn, kHighRank)};
  }();
  return errors;
}

// MiddleNinety() of draws that one error of this size is all of: a larger error is never a smaller
// factor, so those in the places of the errors are in the places of the shares.
Ends MiddleNinetyOf(double size, double least) {
  const double low = std::max(Factor(size * ErrorsAlone().low), least);
  return {std::min(low, 1.0), std::max(Factor(size * ErrorsAlone().high), 1.0)};
}

// Steps that were alike, and are no more after the change: one of them holds what the others do
// not, such as a piece of GPU work that was lost, whose time became a delay.
std::string UnlikeSteps(std::span<const Duration> before, std::span<const Duration> after) {
  if (before.size() < kEnoughSteps || after.size() != before.size()) return "";
  const auto [least, most] = std::ranges::minmax(before);
  const auto [shortest, longest] = std::ranges::minmax(after);
  if (AsDouble(most) > kAlike * AsDouble(least)) return "";
  if (AsDouble(longest) < kUnlike * AsDouble(shortest)) return "";
  return fmt::format("steps that were alike come out between {} and {}", FormatTime(shortest),
                     FormatTime(longest));
}

// What narrows an interval: a pair that was measured here, where there is none yet, or a further
// one.
std::string MeasuredRun(const Doubts& doubts) {
  return fmt::format("{} measured run, kept with whatif --measured --learn",
                     doubts.learned ? "one more" : "one");
}

// What tells more about this kind of prediction.
std::string MoreOf(const Doubts& doubts) {
  const std::string_view kind = doubts.checked.kind;
  if (!doubts.learned && kind.ends_with(", no shapes")) return "record_shapes=True in the profiler";
  return MeasuredRun(doubts);
}

// What is known of the optimization that is known worst.
std::string HeldText(const Doubts& doubts) {
  const LeastChecked& checked = doubts.checked;
  if (checked.held.groups == 0) return "never checked";
  return fmt::format("ranges of \"{}\" held {} of {} measured rows that they did not know{}",
                     checked.kind, checked.held.inside, checked.held.rows,
                     checked.held.groups < kManyGroups ? ", all of one program" : "");
}

// Rows of several groups, or runs that were measured here, tell what such predictions are off by,
// whatever the model says of itself. Not where the host has a part in the step on another vendor's
// GPU: it runs other libraries there, and the rows, composed of kernels, say nothing about it.
bool IsKnown(const Doubts& doubts) {
  const HeldRows& held = doubts.checked.held;
  if (doubts.learned) return true;
  const bool other_vendor = doubts.checked.kind.starts_with("gpu, other vendor");
  if (other_vendor && doubts.by_host > kUnsure) return false;
  return held.groups >= kManyGroups && held.share >= kHeldWell;
}

// Why the word is low, and what would raise it; false when it is not low.
bool IsLow(Prediction& p, const Doubts& doubts, double width) {
  const ReplayCheck& replay = *doubts.replay;
  const double error = std::fabs(replay.error());
  const double typical = std::fabs(replay.typical_error().value_or(0));
  const HeldRows& held = doubts.checked.held;
  const bool fits = !p.peak.has_value() || p.peak->fits();
  const std::string unlike = UnlikeSteps(replay.simulated_steps, p.steps);
  const bool known = doubts.learned || doubts.checked.kind.empty() || held.groups >= kManyGroups;
  const double limit = known ? kUnsure : kSure;
  if (!unlike.empty() && replay.doubt.empty()) {
    p.why = unlike;
    p.raise = "steps that were recorded whole: daydream summary --per-step";
  } else if (!replay.doubt.empty()) {
    p.why = replay.doubt;
    p.raise = "what the finding above says";
  } else if (!doubts.stand_in.empty()) {
    p.why = doubts.stand_in;
    p.raise = "gpu(NEW, from=NAME), with the recorded card";
  } else if (replay.window) {
    p.why = "no step was marked: all that was recorded counts as one";
    p.raise = "marks around each step: prof.step(), or daydream_torch.step()";
  } else if (error > kReplayOff) {
    p.why = fmt::format("the replay is off by {}", FormatPercent(error));
    p.raise = "steps that are alike: --steps, or a longer recording";
  } else if (typical > kTypicalOff) {
    p.why = fmt::format("with typical lags the replay is off by {}", FormatPercent(typical));
    p.raise = "steps that are alike: --steps, or a longer recording";
  } else if (!p.changes.warnings.empty() && !(fits && IsKnown(doubts))) {
    p.why = p.changes.warnings.front();
    if (fits) p.raise = MeasuredRun(doubts);
  } else if (!doubts.learned && held.groups > 0 && held.share < kHeldWell) {
    p.why = HeldText(doubts);
    p.raise = MoreOf(doubts);
  } else if (*p.expected_error > limit) {
    p.why = fmt::format(
        "expected to be off by {} of the step: {}", FormatPercent(*p.expected_error, 0),
        doubts.learned ? Plural(doubts.checked.rows, "run") + " measured here" : HeldText(doubts));
    p.raise = MoreOf(doubts);
  } else if (width > kUndecided) {
    p.why = fmt::format("the interval is {} of the step", FormatPercent(width));
    p.raise = MoreOf(doubts);
  } else {
    return false;
  }
  p.confidence = Confidence::kLow;
  return true;
}

void SetConfidence(Prediction& p, const Doubts& doubts, double width) {
  const ReplayCheck& replay = *doubts.replay;
  const double error = std::fabs(replay.error());
  const double typical = std::fabs(replay.typical_error().value_or(0));
  // Over a host as fast as it may be the gain is another; half of the way is the mean of even
  // draws.
  const double step = AsDouble(p.step);
  const double host = doubts.quick_host && step > 0
                          ? std::fabs(AsDouble(doubts.quick_host->against_baseline) / step - 1) / 2
                          : 0;
  p.expected_error = std::hypot(std::hypot(doubts.expected, host), kMeanOfNormal * doubts.run,
                                kMeanOfNormal * std::max(error, typical) / kNinety);
  p.raise.clear();
  if (IsLow(p, doubts, width)) return;
  const double unchecked = p.unchecked.value_or(0);
  const bool steps = replay.steps >= 2, replays = error <= 0.01 && typical <= 0.03;
  const bool near = *p.expected_error <= kSure,
             known = doubts.checked.rows > 0 && unchecked <= 0.10;
  const HeldRows& held = doubts.checked.held;
  const bool of_kind = !doubts.learned && !doubts.checked.kind.empty();
  const bool few = of_kind && (held.rows < kFewRows || held.groups < kManyGroups);
  const bool warned = !doubts.learned && !p.changes.warnings.empty();
  const bool sure = doubts.unsure_gpu.empty() && !few && !warned && replay.caution.empty() &&
                    p.changes.conditions.empty();
  const bool high = steps && replays && near && known && sure;
  p.confidence = high ? Confidence::kHigh : Confidence::kMedium;
  p.why = fmt::format("expected to be off by {} of the step", FormatPercent(*p.expected_error, 0));
  const double far =
      step > 0 ? std::max(AsDouble(*p.high) - step, step - AsDouble(*p.low)) / step : 0;
  if (far > kFarInterval * *p.expected_error) {
    p.why += fmt::format(", and nine times in ten by less than {}", FormatPercent(far, 0));
  }
  p.why += fmt::format("; replay off by {}", FormatPercent(error));
  if (!high && !replay.caution.empty()) p.why += "; " + replay.caution;
  if (!p.changes.conditions.empty()) p.why += ", if what it needs holds";
  if (doubts.learned) {
    p.why += fmt::format(", {} measured here", Plural(doubts.checked.rows, "run"));
  } else if (held.groups > 0) {
    p.why += fmt::format(", {}{}", HeldText(doubts), few ? ", too few to be sure" : "");
  } else if (doubts.checked.rows == 0) {
    p.why += ", no measured pair tells how well this is modelled, its error is a prior";
  }
  if (warned) p.why += "; " + p.changes.warnings.front();
  if (!doubts.unsure_gpu.empty()) {
    p.why += fmt::format(", numbers of the {} are not sure", doubts.unsure_gpu);
  }
  if (!steps) p.why += ", one step was recorded";
  if (unchecked > 0.10) {
    p.why += fmt::format(", {} of the GPU time in kernels the model was never checked on",
                         FormatPercent(unchecked));
  }
  if (high) return;
  if (!steps) {
    p.raise = "five recorded steps or more";
  } else if (!replays) {
    p.raise = "steps that are alike: --steps, or a longer recording";
  } else {
    p.raise = MoreOf(doubts);
  }
}

// Why a step is an end of its own interval: what looks like a mistake without.
void NoteEdge(Prediction& p, const Doubts& doubts) {
  constexpr double kNear = 0.02;  // of the interval: two digits of a step show no difference
  const double all = AsDouble(*p.high - *p.low);
  if (all < kNear * AsDouble(p.step)) return;
  const bool longest = AsDouble(*p.high - p.step) < kNear * all;
  if (!longest && AsDouble(p.step - *p.low) >= kNear * all) return;
  std::string_view why = "what is not sure here only makes it shorter";
  if (longest && doubts.quick_host && doubts.quick_host->step < p.step.Scaled(1 - kNear)) {
    why = "a host without the profiler only makes it shorter, and the host bounds it";
  } else if (!longest) {
    why = doubts.floor >= p.step.Scaled(1 - kNear) ? "the GPU takes as long at the least"
                                                   : "what is not sure here only makes it longer";
  }
  p.changes.notes.push_back(
      fmt::format("the step is the {} end of its interval: {}", longest ? "long" : "short", why));
}

}  // namespace

namespace {

// What single tasks of an edited graph have to take at least.
class LeastTimeOfTask {
 public:
  LeastTimeOfTask(const Graph& before, const Graph& after, bool roofline)
      : before_(before), after_(after), roofline_(roofline), devices_(after) {}
  Duration Of(TaskId t) {
    const Task &was = before_.task(t), &is = after_.task(t);
    const bool own = IsGpu(is.kind) && is.kind != TaskKind::kCollective && !is.overlaps;
    if (!own || is.removed) return {};
    if (is.duration == was.duration) return is.duration;
    if (!roofline_ || is.kind != TaskKind::kKernel) return {};
    const DeviceSpec* spec = devices_.Of(t);
    if (spec == nullptr || spec->vendor != "NVIDIA") return {};
    if (!known_.has_value()) known_.emplace(after_);
    return known_->Of(t).value_or(Duration{});
  }

 private:
  const Graph &before_, &after_;
  const bool roofline_;
  KnownDevices devices_;
  std::optional<RooflineTimes> known_;
};

LeastGpuTimes::Busy BusyFor(const Graph& after, std::span<const Duration> least) {
  LeastGpuTimes::Busy busy;
  for (size_t i = 0; i < least.size(); ++i) {
    const Task& task = after.task(TaskId(i));
    if (least[i] > Duration{}) busy[{task.step, task.lane}] += least[i];
  }
  return busy;
}

Duration OfBusiest(const Graph& after, const LeastGpuTimes::Busy& busy) {
  std::vector<Duration> most(after.steps().size());  // by step: of its busiest lane
  for (const auto& [key, time] : busy) {
    if (key.first < most.size()) most[key.first] = std::max(most[key.first], time);
  }
  std::vector<Duration> busiest;
  for (size_t step : CountedSteps(after)) busiest.push_back(most[step]);
  return MeanOf(busiest);
}

}  // namespace

std::vector<Duration> LeastTimes(const Graph& before, const Graph& after, bool roofline) {
  std::vector<Duration> least(after.size());
  LeastTimeOfTask times(before, after, roofline);
  for (size_t i = 0; i < before.size(); ++i) least[i] = times.Of(TaskId(i));
  return least;
}

Duration LeastGpuTime(const Graph& after, std::span<const Duration> least) {
  return OfBusiest(after, BusyFor(after, least));
}

LeastGpuTimes::LeastGpuTimes(const Graph& recorded)
    : recorded_(recorded), busy_(BusyFor(recorded, LeastTimes(recorded, recorded, false))) {}

Duration LeastGpuTimes::Of(const Graph& after, bool roofline) const {
  if (after.structure() == 0) return LeastGpuTime(after, LeastTimes(recorded_, after, roofline));
  Busy busy = busy_;
  LeastTimeOfTask was(recorded_, recorded_, false), is(recorded_, after, roofline);
  const auto tasks = RetimedOf(recorded_, after);
  for (const Retimed& t : *tasks) {
    if (!IsGpu(t.kind)) continue;
    const Duration more = is.Of(t.task) - was.Of(t.task);
    const Task& task = after.task(t.task);
    if (more != Duration{}) busy[{task.step, task.lane}] += more;
  }
  return OfBusiest(after, busy);
}

void ForgetInterval(Prediction& p) {
  if (p.confidence == Confidence::kHigh) p.confidence = Confidence::kMedium;
  p.low = p.high = std::nullopt;
  p.least_speedup = p.most_speedup = p.least_as_recorded = std::nullopt;
}

void SetInterval(Prediction& p, const Doubts& doubts) {
  const ReplayCheck& replay = *doubts.replay;
  const double step = AsDouble(p.step);
  const double rules =
      std::max(std::fabs(replay.error()), std::fabs(replay.typical_error().value_or(0))) / kNinety;
  const double spread =
      replay.spread() / std::sqrt(static_cast<double>(std::max<size_t>(replay.steps, 1)));
  // The ranges of parameters say already what the models may be off by, as far as they go.
  double ranges = 0;
  for (const ParamEnds& ends : doubts.params) {
    const double width = AsDouble(ends.at_high - ends.at_low) / std::max(step, 1.0);
    ranges += width * width / 12;  // variance of an even distribution
  }
  const double model = std::sqrt(std::max(0.0, doubts.model * doubts.model - ranges));
  // One draw for all: a larger doubt makes every single draw reach further.
  const double uneven = doubts.resampled.empty() ? spread : 0;
  const double shared = std::hypot(rules, model, std::hypot(doubts.run, doubts.host / kNinety));
  const double normal = std::hypot(shared, uneven);
  // Resampled steps scatter around their own middle, which need not be the step itself.
  const std::vector<Duration> resampled(doubts.resampled.begin(), doubts.resampled.end());
  const double middle = AsDouble(Median(resampled));  // 0 of none
  const bool plain = doubts.params.empty() && !doubts.quick_host && !doubts.kernels && middle <= 0;
  Draw draw, host(2016), kernels(2021);
  std::vector<double> steps, even;  // with and without what steps differ by, as shares of `step`
  std::vector<double> recorded;     // as `even`, over the recorded host
  for (size_t i = 0; i < kDraws && !plain; ++i) {
    double value = 1;
    for (const ParamEnds& ends : doubts.params) {
      value *= 1 + ParamChange(ends, step, draw.Even()) / std::max(step, 1.0);
    }
    const double normal_of_kernels = doubts.kernels ? kernels.Normal() : 0;
    const double as_recorded =
        doubts.kernels ? FactorOfKernels(*doubts.kernels, step, normal_of_kernels) : 1;
    double over_host = as_recorded, against_baseline = as_recorded;
    if (doubts.quick_host) {
      const auto& quick_kernels = doubts.quick_host->kernels;
      const double as_quick =
          quick_kernels ? FactorOfKernels(*quick_kernels, AsDouble(doubts.quick_host->step),
                                          normal_of_kernels)
                        : as_recorded;
      const double at = host.Even();
      const auto change = [&](Duration quick) {
        const double change = as_quick * AsDouble(quick) - as_recorded * step;
        return as_recorded + at * change / std::max(step, 1.0);
      };
      over_host = change(doubts.quick_host->step);
      against_baseline = change(doubts.quick_host->against_baseline);
    }
    const double error = doubts.params.empty() ? ErrorsAlone().drawn[i] : draw.Normal();
    even.push_back(value * against_baseline * Factor(shared * error));
    if (doubts.quick_host) recorded.push_back(value * as_recorded * Factor(shared * error));
    value *= over_host;
    if (middle > 0) value *= AsDouble(doubts.resampled[i % doubts.resampled.size()]) / middle;
    steps.push_back(value * Factor(normal * error));
  }
  const double least = AsDouble(doubts.floor) / Factor(kNinety * doubts.run) / std::max(step, 1.0);
  const Ends all = plain ? MiddleNinetyOf(normal, least) : MiddleNinety(steps, least);
  p.low = std::min(Duration::FromDouble(all.low * step), p.step);
  p.high = std::max(Duration::FromDouble(all.high * step), p.step);
  const Ends both = plain ? MiddleNinetyOf(shared, least) : MiddleNinety(even, least);
  p.least_speedup = p.speedup / both.high;
  p.most_speedup = p.speedup / both.low;
  const Ends same_host = doubts.quick_host ? MiddleNinety(recorded, least) : both;
  p.least_as_recorded = p.speedup / same_host.high;
  NoteEdge(p, doubts);
  SetConfidence(p, doubts, step > 0 ? AsDouble(*p.high - *p.low) / step : 0);
}

bool IsLowAnyway(const ReplayCheck& replay, std::span<const Duration> steps) {
  return !replay.doubt.empty() || replay.window || std::fabs(replay.error()) > kReplayOff ||
         std::fabs(replay.typical_error().value_or(0)) > kTypicalOff ||
         !UnlikeSteps(replay.simulated_steps, steps).empty();
}

void MayGainNothing(Duration baseline, Prediction& p) {
  if (p.step >= baseline) return;
  if (p.high.has_value()) p.high = std::max(*p.high, baseline);
  for (std::optional<double>* end : {&p.least_speedup, &p.least_as_recorded}) {
    if (end->has_value()) *end = std::min(**end, 1.0);
  }
}

}  // namespace daydream
