// Which steps of a long recording stand for all of them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "trace/steps.h"

namespace daydream {

// A recording of more rows is asked of a part of its steps. Measured:
// docs/decisions/017-long-recordings-are-asked-of-some-steps.md.
inline constexpr size_t kLongRecording = 250'000;
// So many steps of it count at least: the mean of eight whose times vary by 3 % is off by 1 %.
inline constexpr size_t kFewestSteps = 8;
// The share by which the mean step of a part may be off that of all before that is said.
inline constexpr double kUnlikeSteps = 0.03;

// Steps that follow one another, by place in Steps::steps.
struct StepRange {
  size_t first = 0, last = 0;     // those that are asked
  size_t before = 0, behind = 0;  // so many around them, which are there and do not count
  size_t begin() const { return first - before; }
  size_t end() const { return last + behind + 1; }
  friend bool operator==(const StepRange&, const StepRange&) = default;
};

// GPU periods (graph/step_windows.h) of the steps that count, by place; none for the others, and
// where a step or the next one launches nothing.
std::vector<std::optional<Duration>> StepTimes(const Steps& steps);
// Mean of those that are there; 0 without any.
Duration MeanTime(std::span<const std::optional<Duration>> times);

// The steps that are to stand for all of a recording with so many rows; none when it has at most
// `most_rows`, when there are too few steps for a part to be worth it, or when they are no evidence
// for one another: without marks or a period, without GPU work, or with layers in some only.
//
// The time of a step is its GPU period (graph/step_windows.h). Of all runs of steps that follow one
// another and count, it is the one whose mean is nearest to that of all; of those that are within a
// thousandth of that, the one whose times are distributed the most like all; of these the first.
// A run holds what `most_rows` allow, at least kFewestSteps. When its mean is off by kUnlikeSteps,
// runs twice as long are tried, up to four times the rows. O(rows + steps log steps).
std::optional<StepRange> ChooseSteps(const Steps& steps, size_t rows,
                                     size_t most_rows = kLongRecording);

// The steps from `first` to `last` with those around them: one behind, and before them one or as
// many as launch twice what a launch queue holds, so that queue, lead and backlog of the first are
// real.
// None where that is most of the recording, or where steps cannot be taken by themselves.
std::optional<StepRange> StepsAround(const Steps& steps, size_t first, size_t last);

}  // namespace daydream
