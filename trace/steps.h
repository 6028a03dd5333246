// Where the training steps of a trace are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace daydream {

enum class StepMethod : uint8_t {
  kMark,          // the program marked its steps while it was recorded
  kProfilerStep,  // "ProfilerStep#N" annotations
  kAnnotation,    // another annotation that repeats (Optimizer.step, NVTX "step 3")
  kPeriod,        // the launch sequence repeats with this period; there were no marks
  kWindow,        // nothing repeats: the whole trace counts as one step
};

enum class StepUse : uint8_t {
  kMeasured,     // counts
  kWarmUp,       // first step of the window, or clearly slower than the rest
  kLabelled,     // its layers were marked, which takes time; others were not
  kNotRecorded,  // no step: what lies between two windows that were recorded
  kBeside,       // beside the steps that are asked of a long recording (trace/part/part.h)
  kStub,         // holds (almost) no GPU work, is cut off by the end of the window, or lost its end
};

struct Step {
  std::string label;   // "ProfilerStep#12", "iteration 3"
  Instant begin, end;  // on the CPU thread that carries the marks; steps do not overlap
  StepUse use = StepUse::kMeasured;
  // Its layers were marked; steps that are not labelled can take theirs from it.
  bool labelled = false;
  bool between = false;  // no mark holds it: work between two marks, never measured
  std::string why;       // why it is left out; empty when it counts
  size_t launched = 0;   // GPU tasks whose calls start from its begin to that of the next step
  std::optional<Instant> gpu_begin = {};  // first start of these; none where there are none
};

struct Steps {
  StepMethod method = StepMethod::kWindow;
  LaneId lane;              // thread that carries the marks; None for kWindow
  std::vector<Step> steps;  // in time order, at least one when the trace has events
  size_t inside = 0;        // marks inside of others of their name, which are no steps
  // Share of the work from mark to mark that lies behind the mark's end, where it is much: then the
  // marks say where steps begin, and each goes on to the next.
  double behind_marks = 0;
  // Only their ends are known: the first may have begun before the recording.
  bool ends_only = false;
  size_t measured() const;
};

// Finds the steps of `trace`: marked ones first, then those of annotations, then the period of the
// launches. Labelled steps count only when fewer than three others do. Of three or more the first
// does not count, and those behind it do not that take clearly longer than all others. Where
// numbers of marks are missing and nothing was launched there, two windows of a profiler became one
// file: what lies between is no step, and the first of the second window counts only if no other
// does. Of a trace that is a part (trace/part/part.h) those that were found in the whole. O(rows).
Steps FindSteps(const Trace& trace);

}  // namespace daydream
