// The question of the whole project as one pure function: a graph and scenarios in, predictions
// out. No input, no output, no clock; the same answer with any number of threads.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/build.h"
#include "report/predict/causes.h"
#include "report/predict/learned.h"
#include "report/predict/self_check.h"
#include "report/predict/true_step.h"
#include "report/predict/unrecorded.h"
#include "report/predict/why.h"
#include "simulator/critical_path.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// Examples that one recorded step handles.
struct BatchSize {
  double samples = 0;  // 0: not known
  std::string source;  // "--samples", "conv2d": the op whose shapes tell
};
BatchSize FindBatchSize(const Graph& graph);  // from the recorded shapes; O(tasks)

// Nothing recorded says where a step begins, and nothing repeats: all of it is taken for one step.
bool IsWindow(const BuiltGraph& built);

// How well the unchanged graph reproduces what was measured.
struct ReplayCheck {
  Duration measured, simulated;     // mean period of the steps that count
  std::optional<Duration> typical;  // simulated with typical instead of measured lags
  std::optional<Duration> steady;  // without one-time stalls (report/stalls.h), where there are any
  std::optional<Duration> given;   // what --true-step says that it takes when nobody records it
  // What it said, where the GPU's part takes longer, which stays: TrueStep::reached() is false.
  std::optional<Duration> not_reached;
  std::optional<Unrecorded> unrecorded;  // without what recording cost, where the recording tells
  size_t steps = 0;                      // steps behind the means
  bool window = false;                   // IsWindow(): the one step is all that was recorded
  std::vector<Duration> measured_steps, simulated_steps;  // one a step that counts
  std::vector<std::string> step_names;                    // of these, where they are marked
  BatchSize batch;
  // Checks that can fail, where the unchanged replay hardly can (report/predict/self_check.h).
  std::optional<double> unexplained;  // share of the step that no rule explains
  std::optional<StepTest> repeated;   // each step played by itself
  std::optional<StepTest> crossed;    // each with the lags of the others
  // What is wrong with the recording (report/questions/findings.h): no prediction over it is of
  // more than low confidence. Empty: nothing.
  std::string doubt;
  // The same for what only rules out the word "high".
  std::string caution;
  // Not OK: there is no step to predict anything of, and every prediction fails with this.
  absl::Status no_step;

  // The one that is furthest off: its size, and what it says.
  struct Worst {
    double error = 0;
    std::string what;  // "a step repeated by itself is 12.3 % longer"
  };
  Worst worst() const;
  // The same of single steps, which may be off to both sides where their mean is not: named.
  Worst worst_step() const;
  // What worst_step() says where that is further off than may be: "ProfilerStep#8 played by itself
  // is off by +16.2 % (the mean of the steps is not)"; else "".
  std::string step_doubt() const;
  // Why the replayed step is not what was measured, or "".
  std::string baseline_doubt() const;
  // The step that every command speaks of and predictions are compared with, as far as it was
  // measured, and what it is called: "step", "steady step" without one-time stalls, "unrecorded
  // step" without what recording cost.
  Duration step() const;
  std::string_view step_name() const;
  double error() const;  // signed share: simulated / measured - 1
  std::optional<double> typical_error() const;
  double median_step_error() const;  // median over the steps of |simulated/measured - 1|
  double spread() const;             // of the measured steps: standard deviation / mean
};

// kGiven: the step that --true-step named.
enum class Confidence : uint8_t { kMeasured, kGiven, kHigh, kMedium, kLow };
std::string_view Name(Confidence c);

// Steps that handle `samples` times the examples compare by the example only.
std::string ThroughputNote(double samples, Duration step, double gain);

// What all tasks together take, to compare with outcomes that differ from this one in times alone.
struct WholeWork {
  // The same number for all of them (NumberOfShape()); 0: they are of the recorded graph's.
  uint64_t shape = 0;
  Duration time;  // but for what is the same in all of them
};

struct Prediction {
  std::string name;               // "baseline", "amp + fuse"
  std::vector<std::string> opts;  // "amp", "fuse"
  // Parts of a combination that found nothing to change (E0601) and were left out of it.
  std::vector<std::string> left_out;
  absl::Status error;  // not OK: it could not be predicted and the rest is empty
  bool bound = false;  // a limit, printed with <=
  // Mean period of the steps that count, the headline of every command; of the baseline without
  // one-time stalls (ReplayCheck::measured is the mean with them).
  Duration step;
  std::vector<Duration> steps;        // period of each step that counts; their mean is `step`
  Duration simulated;                 // the step without what was learned
  std::optional<Duration> window;     // first start to last end, where that was played
  std::optional<Duration> low, high;  // 90 % interval; bounds have none
  double speedup = 1;                 // baseline step / step; infinite when the step is 0
  // Examples a second, against the baseline: the speed-up times what a step handles more. What
  // options are ranked by, as a step of twice the batch is no loss.
  double throughput_gain = 1;
  double samples = 0;  // examples that `step` handles; 0: not known
  // 90 % interval of it. By what steps differ from one another, both sides differ together, so that
  // it may be narrower than `low` to `high`. None without these.
  std::optional<double> least_speedup, most_speedup;
  // The low end if a profiler had added nothing to the host's work. What is tried first goes by it:
  // the doubt is about the recording, and all options share it.
  std::optional<double> least_as_recorded;
  // Of the baseline: the step if the profiler had made each piece of host work as much longer as it
  // may have (report/predict/quick_host.h). That is in the intervals of steps, too.
  std::optional<Duration> over_quick_host;
  Confidence confidence = Confidence::kMeasured;
  // How far off the step is expected to be, on average, as a share of it: what the word goes by.
  std::optional<double> expected_error;
  std::string why;    // what set the confidence
  std::string raise;  // what would raise it; empty: nothing that is known
  std::vector<CauseShare> causes;
  std::optional<PeakAfter> peak;  // of GPU memory; none when that of the baseline is not known
  std::optional<int64_t> memory_change;  // peak after minus peak before; none when not known
  std::optional<Explanation> why_not;    // what became of the work that was taken away
  // Part of the GPU time in kernels whose new times come from a model that was never compared with
  // measured ones of their class (report/predict/residuals.h). None when no kernel time was
  // modelled.
  std::optional<double> unchecked;
  Correction learned;  // already in `step`; no rows: nothing learned
  // What it can save at the most of the recorded step (report/predict/most_saved.h): of predictions
  // that save less than was asked for. Not known: Duration::Max().
  Duration can_save = Duration::Max();
  // Only where it was asked for (WhatIfOptions::work).
  std::optional<WholeWork> work;
  BoundBy path;     // critical path per step, by resource
  Changes changes;  // of all applications together; notes and warnings in it too
};

struct WhatIf {
  ReplayCheck replay;
  MemoryProfile memory;                 // of the recorded step
  std::vector<Prediction> predictions;  // baseline, singles by gain, then the combinations
  // Index of the prediction that answers the question: the last scenario asked for. 0 where that
  // is not done.
  size_t main = 0;
  bool main_done = true;
  // It was told to stop: names of the scenarios that were not begun, in the order of `predictions`.
  std::vector<std::string> not_done;
};

struct WhatIfOptions {
  bool alone = true;  // also predict every application of a combination alone
  bool intervals = true;
  bool explain = true;  // fill Prediction::why_not
  // Causes and the path. Without, they are found only where the interval depends on them.
  bool why = true;
  // Both of all predictions. Without, only of WhatIf::main: a table shows no other.
  bool explain_all = true;
  // Somebody reads Prediction::path. Without, none is looked for where sums tell that the host
  // bounds the step (report/predict/host_bound.h).
  bool path = true;
  bool work = false;  // fill Prediction::work
  // Nothing else is read than what a row of a sweep holds: no causes, notes and reasons. Without
  // intervals, models are then asked only where they may make the word low.
  bool row = false;
  // Times of kernels instead of steps (report/predict/kernel_time.h), everywhere: `replay` is then
  // MeasuredKernelTimes(), and causes are one for each optimization.
  bool kernel_time = false;
  // Steps are as long as the recorded number of examples takes, whatever a step handles then.
  bool per_example = false;
  // Limits of a scenario (`free-host`) are known to hold of the program that is asked about, as of
  // one whose host was never waited for: what is left is a prediction with its interval.
  bool limits_hold = false;
  // What was taken off the host's work of `built` (TakeOffRecording); none: nothing.
  const TrueStep* true_step = nullptr;
  // What predictions are compared with has host work that a profiler made longer, too.
  bool profiled_alike = false;
  // A prediction that saves less is only the step, the speed-up, the memory and the changes: no
  // causes, no interval, no confidence, no path. A limit never is more.
  std::optional<Duration> least_saved = {};
  // Not OK: what every scenario answers, of a recording of which only the baseline is told.
  absl::Status refused = absl::OkStatus();
  unsigned jobs = 1;
  size_t resampled = 256;                    // most step times that are drawn anew for an interval
  std::span<const LearnedRow> learned = {};  // of any optimizations and devices
  std::vector<std::string> left_out = {};    // groups of rows that may not judge their kin
  std::function<void(size_t done, size_t total)> progress;  // called from any thread, one at a time
  // Asked from any thread before each scenario: true once no more is to be begun.
  std::function<bool()> stopped = {};
};

// NAME.PARAM=VALUE of --set.
struct Setting {
  std::string transform, param, value;
};
// E0108 unless it reads NAME.PARAM=VALUE and names a parameter that exists, of a built-in
// optimization or of one of `files`.
absl::StatusOr<Setting> ParseSetting(std::string_view text,
                                     std::span<const std::shared_ptr<const OptionFile>> files = {});
// Applies settings to every application that did not give that parameter itself. E0108 when a
// setting fits none of them.
absl::Status ApplySettings(std::span<const Setting> settings,
                           std::vector<std::vector<Application>>& scenarios);

// Compares the replay of `built` with what was measured. `typical`: the same trace built with
// Lags::kTypical, or null.
absl::StatusOr<ReplayCheck> CheckReplay(const BuiltGraph& built, const BuiltGraph* typical);

// Recorded periods of the steps that count (report/windows.h).
std::vector<Duration> MeasuredSteps(const BuiltGraph& built);

// Predicts the baseline and `scenarios`; `replay` is CheckReplay(built). Fails only when the graph
// itself cannot be played; a scenario that cannot be predicted carries its own error.
absl::StatusOr<WhatIf> PredictAll(const BuiltGraph& built, const ReplayCheck& replay,
                                  std::span<const std::vector<Application>> scenarios,
                                  const WhatIfOptions& options = {});

// "amp+fuse(what=optimizer)": the applications with the parameters that are not as by default,
// sorted, for LearnedRow::opts.
std::string LearnedName(std::span<const Application> scenario);
// Name of the first GPU of the recording, or "".
std::string DeviceName(const Graph& graph);

// Applies `scenario` in order. Parts of a combination that find nothing to change are skipped and
// leave no entry in the result; when all are skipped, or one fails for another reason, so does
// this. `each` is called after every application, skipped ones with nullptr. `ends`
// and `notes`: as Apply() has them.
absl::Status ApplyAll(std::span<const Application> scenario, Graph& graph,
                      const std::function<absl::Status(const Application&, Applied*)>& each = {},
                      EndColumns* ends = nullptr, EditNotes notes = EditNotes::kKept);

// One scenario played once: the edited graph and its timeline with blockers.
struct Played {
  Graph graph;
  Timeline timeline;
};
absl::StatusOr<Played> Play(const Graph& graph, std::span<const Application> scenario);

}  // namespace daydream
