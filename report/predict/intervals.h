// How far a prediction may be off, and the word for it.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/predict/error_kind.h"
#include "report/predict/other_kernels.h"
#include "report/predict/what_if.h"

namespace daydream {

inline constexpr double kNinety = 1.645;  // standard deviations from the middle to the end of 90 %
inline double AsDouble(Duration d) { return static_cast<double>(d.ns); }
// Of two times; infinite over nothing, and 1 where both are nothing.
inline double Ratio(Duration a, Duration b) {
  if (b.ns > 0) return AsDouble(a) / AsDouble(b);
  return a.ns <= 0 ? 1 : std::numeric_limits<double>::infinity();
}
// How many times as long something gets by an error of this share of it. Errors reach as far down
// as up: one of 100 % is twice or half the time, so that nothing takes none.
inline double Factor(double error) { return error >= 0 ? 1 + error : 1 / (1 - error); }

// Step times with one parameter at an end of its plausible range and all others unchanged; `at` is
// where its value lies in the range, from 0 to 1.
struct ParamEnds {
  Duration at_low, at_high;
  double at = 0.5;
};

// Everything a prediction is unsure by.
struct Doubts {
  const ReplayCheck* replay = nullptr;
  std::vector<ParamEnds> params;  // those that the user did not fix
  std::span<const Duration>
      resampled;  // step times with steps drawn anew (report/predict/step_spread.h)
  // Standard deviations, as shares of the step.
  double model = 0;  // of the optimizations' effects (report/predict/residuals.h), or learned
  std::optional<KernelEnds> kernels;  // of another GPU, whose error is then no part of `model`
  double expected = 0;                // not of this form: the mean size of the same error
  double run = 0;  // what the same program differs by from run to run; 0 when in `model`
  // How far the step is off when the recording's cost lies otherwise on the host's work, or is
  // another within its error, as a share: counts as the end of 90 %.
  double host = 0;
  // With a host as fast as a profiler may have hidden (report/predict/quick_host.h), which is
  // anything up to that: the step, and what it is where the unchanged one, over such a host, takes
  // as long as recorded.
  struct OverQuickHost {
    Duration step, against_baseline;
    std::optional<KernelEnds> kernels;  // as above, over that host; where the above is known
  };
  std::optional<OverQuickHost> quick_host;
  Duration floor;  // UntouchedGpuTime(): no step is shorter
  // Measured rows behind the optimization that is known worst; learned rows when there are any.
  LeastChecked checked;
  bool learned = false;
  double by_host = 0;      // the share of the step's critical path that is host work
  std::string stand_in;    // of the recorded GPU (report/predict/model_errors.h)
  std::string unsure_gpu;  // the GPU that was put in, where its description has unsure numbers
};

// What each task of `after`, an edited copy of `before`, has to take on its lane at least, however
// wrong the models are: GPU work that is as recorded, its time; with `roofline` also re-timed
// kernels of known work, what the data sheet of the GPU in `after` allows, where it is NVIDIA's
// (other descriptions do not hold the fp32 rate of matrix cores). Else 0. Collectives wait for
// others: 0. O(tasks).
std::vector<Duration> LeastTimes(const Graph& before, const Graph& after, bool roofline);
// Of a step: on its busiest stream, as a mean over the counted steps.
Duration LeastGpuTime(const Graph& after, std::span<const Duration> least);

// The same of many copies of one graph.
class LeastGpuTimes {
 public:
  explicit LeastGpuTimes(const Graph& recorded);  // keeps a reference; O(tasks)
  // LeastGpuTime() of LeastTimes(recorded, after, roofline). O(retimed()) where only times were
  // set, else O(tasks).
  Duration Of(const Graph& after, bool roofline) const;

  using Busy = absl::flat_hash_map<std::pair<uint16_t, LaneId>, Duration>;  // by step and stream

 private:
  const Graph& recorded_;
  Busy busy_;
};

// Whether the word is low whatever models may be off by: of a step whose parts are `steps`, or by
// the recording alone.
bool IsLowAnyway(const ReplayCheck& replay, std::span<const Duration> steps = {});

// Fills low, high, least_speedup, most_speedup, confidence and why of `p`: the ends of the middle
// 90 % of 4096 draws, with a fixed seed, each `p.step` times
//   a resampled step time over their median (without any: a normal error of spread / sqrt(steps),
//     from the measured step times);
//   for every parameter what the step changes to at a value drawn evenly from its range, between
//     the replays at both ends and the one at its default on straight lines;
//   what it changes to with kernels off by a normal error, on a curve through the replays at both
//     ends of its 90 %;
//   what it changes to with a host drawn evenly between the recorded one and `quick_host`;
//   a normal error whose variance is the sum of those of `run`, of `host`, of `model` (less the
//   variance that
//     the parameters bring, which are part of the models and of learned errors), and of the replay:
//     the larger of |replay error| and |typical error| counts as the end of 90 %.
// A larger doubt never makes the interval narrower.
// Normal errors are factors, 1 + e upwards and 1 / (1 + e) downwards: about the same where they are
// small, and never a step of no time where they are large. The low end is no shorter than `floor`,
// faster by what runs differ by. The ends of the speed-up come from the same draws without the
// first line: what steps differ by among themselves is on both sides of it, as a quick host is.
//
// The word says how far off the step is expected to be, and whether that can be believed.
// Expected (Prediction::expected_error) are, as squares: `expected`, which is what held rows of
// these optimizations were off by on average for a change of this size, the means of the errors of
// `run` and of the replay, and half of what a quick host makes of the gain. Low above 15 % of the
// step, high up to 5 % (both chosen; decision 006 has what they held), else medium.
//
// Low also where another GPU stands in for the recorded one, and when the recording itself is in
// doubt (ReplayCheck::doubt), or is a window without marks of steps; when steps that were alike
// come out 50 % apart; when the replay is off by more than 3 %, or the typical replay by more than
// 10 %; when a transform warned, and neither were runs learned from nor did rows of two groups
// hold, or the GPU is another vendor's and more than 15 % of the step's critical path is the
// host's; when the optimizations that change more than 2 % of the step (all, when none does) hold
// one of which less than eight in ten held rows were inside, or one that was checked on fewer than
// two groups, and more than the above 5 % are expected; or when the interval is longer than the
// step. High only when nothing was found that puts predictions in doubt (ReplayCheck::caution), the
// replay is within 1 %, the typical one within 3 %, at least two steps count, three held rows or
// more of two groups stand behind each of these optimizations, none of them warned, no more than a
// tenth of the GPU time is in kernels that the model was never checked on, and the changes have no
// conditions. `raise`: what would make it better.
void SetInterval(Prediction& p, const Doubts& doubts);
// Where nobody wants one: without it, no confidence is high.
void ForgetInterval(Prediction& p);

// Widens the interval to `baseline`, its step, where the prediction is shorter: what the step waits
// for may take as long as before.
void MayGainNothing(Duration baseline, Prediction& p);

}  // namespace daydream
