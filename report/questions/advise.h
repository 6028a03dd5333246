// What to try next: every optimization predicted alone, then the set of them that saves most.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/predict/what_if.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// One optimization that was tried. `prediction` tells, in its error, why there is none.
struct Option {
  size_t place = 0;  // among those that were given
  Application application;
  Prediction prediction;
  double score = 0;          // what `worth` is sorted by
  std::vector<Option> ways;  // to the same gain by another way, not in a row of its own
};

// Two options together, by their places in Advised::worth.
struct OptionPair {
  size_t a = 0, b = 0;
  std::optional<Duration> step;  // none: they exclude each other, or one leaves the other no work
  std::string reason;            // why there is none
  Duration extra;                // saved beyond what both save alone; negative where they overlap
};

struct Advised {
  ReplayCheck replay;
  Prediction baseline;
  std::vector<Limiter> path;  // of the unchanged steps, longest first
  // Save at least AdviseOptions::worth of the step; what to try first comes first.
  std::vector<Option> worth;
  std::vector<Option> not_worth;     // save less, or cost; most first
  std::vector<Option> nothing_here;  // find nothing to change in this trace
  std::vector<Option> unjudged;      // the trace does not hold what they need
  std::vector<Option> mended;        // of ranks: the slowest one faster, which nobody can switch on
  std::vector<Option> limits;        // bounds, lowest step first; also options that turn out as one
  std::vector<OptionPair> pairs;     // of the first options of `worth`
  // The set that saves most, of options that save at least AdviseOptions::worth beside the others;
  // two or more of them, none when one alone does. Without a member that adds more doubt than gain:
  // the one that saves least beside the others, or one that alone may make the step a tenth longer,
  // stays only where the low end of the set is better with it.
  std::optional<Prediction> best;
  // It was told to stop: some options were not tried, or the best set was not looked for.
  bool interrupted = false;
  size_t asked = 0, untried = 0;  // options and limits
  // Rows of `worth`, and behind its end places in `not_worth`, in the order of application.
  std::vector<size_t> best_members;
  std::vector<Application> best_list;  // the same as a scenario
};

// What takes its time.
enum class AdviseStage : uint8_t {
  kStep,     // as recorded is played
  kOptions,  // each is tried
  kSets,     // of them are played, nobody knows how many
  kReasons,  // are found for the first rows
};

struct AdviseOptions {
  double worth = 0.005;      // share of the step that is worth a row
  bool per_example = false;  // as in WhatIfOptions, like the next
  const TrueStep* true_step = nullptr;
  // How easily an option is tried, from 0 to 1: 1 takes nothing and risks nothing. None: all alike.
  // `changes`: what it does to this program.
  std::function<double(const Application&, const Changes& changes)> ease = {};
  // What trying an option takes, and how much a set may take in all. None: as much as it needs.
  std::function<double(const Application&, const Changes& changes)> effort = {};
  double budget = std::numeric_limits<double>::infinity();
  // Rows of `worth`, from the first, with causes, path and explanation, which take more than the
  // rest. All: those of every row and of the best set.
  size_t explained = kAllRows;
  static constexpr size_t kAllRows = std::numeric_limits<size_t>::max();
  unsigned jobs = 1;
  // From any thread, one at a time; `total` 0: nobody knows.
  std::function<void(AdviseStage stage, size_t done, size_t total)> progress = {};
  // Asked from any thread: true once nothing more is to be begun. Without the best set, then.
  std::function<bool()> stopped = {};
  bool Stopped() const { return stopped && stopped(); }
};

// What options are tried on: the steps of one rank, or ranks that are played together.
class TriedProgram {
 public:
  struct Outcome {
    std::optional<Duration> step;
    std::string reason;  // why there is none
  };
  virtual ~TriedProgram() = default;

  virtual const Prediction& baseline() const = 0;
  virtual size_t tasks() const = 0;
  // What a prediction is asked for beside the step.
  enum class Told : uint8_t {
    kAll,
    kInterval,  // without causes, path and explanation
    kCauses,    // these, without the interval
  };
  // May be called from several threads, as the next may not. What saves less than `least` needs no
  // more than its step.
  virtual Prediction Predict(const std::vector<Application>& scenario,
                             std::optional<Duration> least, Told told) const = 0;
  // The step with each of these alone, none where the others leave an option nothing to do.
  // `played`: after each, from any thread.
  virtual std::vector<Outcome> Play(const std::vector<std::vector<Application>>& scenarios,
                                    const std::function<void()>& played) const = 0;
};

// True of options that reach one gain in two ways: graphs and aot.
bool AreTwoWays(std::string_view a, std::string_view b);

// Predicts each of `options` and `limits` alone, then looks for the best set: all pairs of the
// options that save most are played; to the better of the best option and the best pair, to what
// saves most alone, and to what is to be tried first, the option that saves most beside it is
// added, whatever it saves alone, while that is worth a row (what was not worth it is asked once
// more at the end); where the other way to a member's gain saves more beside the others, it takes
// its place; then members without which the step is no longer are dropped. The best of these is the
// best set. Options stand in a set in the order of `options`. Pairs that exclude each other are
// never together, nor is an option in a set that leaves it nothing to do, nor do the members of a
// set take more than the budget. What only adds work, for memory, is in no set. So the best set is
// never worse than the best option.
// Deterministic: the same for any `jobs`.
//
// `worth` is in the order in which to try: by ease times confidence times what is likely to be
// gained, which is the low end of the interval of the saving (nothing below 0) and a tenth of the
// saving itself, as much of it as it is of what may be saved or lost, so that options whose
// interval includes no gain at all still have an order. Two ways to one gain (graphs and aot both
// take away the launches) are one row, that of the better one.
absl::StatusOr<Advised> Advise(const BuiltGraph& built, const ReplayCheck& replay,
                               std::span<const Application> options,
                               std::span<const Application> limits,
                               const AdviseOptions& advise = {});
// The same of another program: all but `replay` and `path`.
Advised Advise(const TriedProgram& program, std::span<const Application> options,
               std::span<const Application> limits, const AdviseOptions& advise = {});

}  // namespace daydream
