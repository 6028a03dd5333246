// Many scenarios of one trace, each a row of its own, and the rows as text: what a journal holds
// (tools/sweep/journal.h) and all that the result is printed from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/questions/joint.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// One thing that rows hang on: "--steps", "the content of gpu.yaml", "the program".
struct SweepPart {
  std::string name;
  uint64_t hash = 0;
  bool operator==(const SweepPart&) const = default;
};

// What all rows of a sweep have in common. Sweeps with equal heads may share rows.
struct SweepHead {
  uint64_t key = 0;  // of the graph, the program and everything that a row hangs on
  std::string trace;
  std::vector<std::string> specs;  // the --opt, for PlanSweep()
  std::vector<SweepPart> parts;    // what `key` is of
  Duration measured, baseline;     // recorded and replayed step; ranks together: replayed only
  std::string step_name = "step";  // what the replayed one is called (ReplayCheck::step_name())
  std::vector<Duration> steps;     // periods of the counted steps, whose mean is `baseline`
  std::vector<Finding> findings;   // about the recording
  bool operator==(const SweepHead&) const = default;
};

struct SweepRow {
  size_t index = 0;  // place of its point in the plan
  Duration step;
  std::vector<Duration> steps;  // periods, whose mean `step` is; of ranks together none
  std::optional<Duration> low, high;
  std::optional<double> least_speedup, most_speedup;
  bool bound = false;
  Confidence confidence = Confidence::kMeasured;
  std::optional<int64_t> memory;  // change of the peak, in bytes
  double examples = 1;            // that a step handles, against the recorded one
  std::string left_out;           // parts that found nothing to change: "amp, prefetch(2)"
  bool between = false;           // its interval lies between those of rows that were played
  std::string code, error;        // not empty: it could not be predicted
  bool operator==(const SweepRow&) const = default;

  // The step for as many examples as the recorded one handles: what rows are compared by.
  Duration AsRecorded() const { return step.Scaled(1 / examples); }
};

// What of `other` differs, for a message: "--steps, the content of gpu.yaml"; "" where nothing
// does.
std::string WhatDiffers(const SweepHead& one, const SweepHead& other);

// A line of a journal: what it says, a tab, a checksum and the end of the line, so that a changed
// digit is no other result. Rows are sealed with the text of their head: a row of another sweep is
// none of this one, and neither are those behind a head that lost a line.
std::string SealLine(std::string_view line, uint64_t seal = 0);
// What rows behind this head are sealed with.
uint64_t SealOfRows(std::string_view head);
// The first lines of a journal. All but the first are sealed, without a key; the last is empty.
std::string FormatSweepHead(const SweepHead& head);
// One line, without its end.
std::string FormatSweepRow(const SweepRow& row);
std::optional<SweepRow> ParseSweepRow(std::string_view line);

struct SweepText {
  SweepHead head;
  std::vector<SweepRow> rows;
  size_t whole = 0;  // bytes up to the end of the last whole line
};
// E0703 names the line that cannot be read. A last line without an end was cut off when the writer
// died, and is left out.
absl::StatusOr<SweepText> ParseSweep(std::string_view text, std::string_view file);

// Of what its tasks, edges and steps are and take, for a program and a file that are hashed beside
// it: names and details count by their numbers, which the same file gives to the same text.
uint64_t HashOf(const Graph& graph);
// The same for text, going on from `hash`.
uint64_t HashOf(std::string_view text, uint64_t hash);

// The row of a scenario on ranks that are played together. What memory becomes is not known.
SweepRow RowOf(size_t index, const JointPrediction& p);

// A row and what else it takes to look at rows side by side.
struct PlayedRow {
  SweepRow row;
  std::optional<WholeWork> work;  // Prediction::work
};

class ToldRows;

// Predicts rows. Run() may be called from several threads.
class SweepRunner {
 public:
  // Keeps references to `built` and `replay`.
  static absl::StatusOr<SweepRunner> Make(const BuiltGraph& built, const ReplayCheck& replay,
                                          const WhatIfOptions& options);
  SweepRunner(SweepRunner&&) noexcept;
  ~SweepRunner();

  Duration baseline() const;
  const std::vector<Duration>& steps() const;  // of it
  bool intervals() const;                      // WhatIfOptions::intervals
  // What whatif says about this scenario.
  SweepRow Run(size_t index, const std::vector<Application>& scenario) const;
  // The same with or without its interval.
  PlayedRow Play(size_t index, const std::vector<Application>& scenario, bool interval) const;

  // Rows that are applied together, where that can be; else null. Each two have
  // the same PlaceOfTimes(). No more than most_told() of the first, so that there is memory for
  // their times.
  std::unique_ptr<ToldRows> Tell(std::span<const std::vector<Application>* const> rows) const;
  size_t most_told(std::span<const Application> scenario) const;
  // Play() of what is the n-th row there; with an interval only of a scenario of one application.
  PlayedRow PlayTold(size_t index, const std::vector<Application>& scenario, bool interval,
                     ToldRows& told, size_t nth) const;

 private:
  struct Impl;
  explicit SweepRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace daydream
