// A part of a long recording: some of its steps, which stand for all of them. A graph of 76 steps
// that are alike says no more than one of 12
// (docs/decisions/017-long-recordings-are-asked-of-some-steps.md).
//
// A part is a Trace as a recorder would have written it that was switched on for these steps only:
// GPU work that was launched before them has no call, what they launched is there to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trace/part/steps_to_ask.h"
#include "trace/steps.h"
#include "trace/trace.h"

namespace daydream {

enum class PartIs : uint8_t {
  kChosen,  // by ChooseSteps, to stand for all
  kNamed,   // by somebody who asks about these steps
};

// Which steps a part is of.
struct Part {
  PartIs is = PartIs::kChosen;
  Steps steps;            // those of the part, as they were found in the whole recording
  StepRange range;        // their places there
  size_t recorded = 0;    // steps of the recording
  Duration mean, of_all;  // time of a step: of those that are asked, of all that count
  uint64_t rows_left_out = 0;
  // The longest step that counts and is not asked: its label and time; "" when there is none.
  std::string longest;
  Duration longest_time;
  // How far the mean is from that of all, as a share of that.
  double unlike() const;
};

// The rows of these steps. `steps` are FindSteps(trace). The first step of the recording, which is
// warm-up, counts where it is named. Names are shared, the rest is copied.
// O(rows of the part), and a look at the times of the others.
std::shared_ptr<const Trace> PartOf(const Trace& trace, const Steps& steps, const StepRange& range,
                                    PartIs is);

// What a recording is asked of where nobody names steps: the part that stands for all of a long one
// (kLongRecording, ChooseSteps), else `trace`. Ranks in one file are asked as a whole: their steps
// would have to be chosen together. O(rows) where it is long.
std::shared_ptr<const Trace> StandingForAll(std::shared_ptr<const Trace> trace);

}  // namespace daydream
