// Launches that are recorded once and replayed: what `graphs` and `aot` have in common.
#pragma once

#include "transforms/core/transform.h"

namespace daydream {

inline constexpr ParamSpec kGraphLaunchParam = {
    .name = "launch",
    .unit = Unit::kDuration,
    .fallback = 9000,
    .low = 2500,
    .high = 28000,
    .max = 1e9,
    .help = "host time of a graph launch without its nodes",
    .source =
        "design estimate, not measured, between 2.5 us (NVIDIA Technical Blog, Constant "
        "Time Launch for Straight-Line CUDA Graphs) and 13 to 28 us (least and median of 70 "
        "small graph launches on an A100 under the profiler)"};
inline constexpr ParamSpec kGraphNodeParam = {
    .name = "per_node",
    .unit = Unit::kDuration,
    .fallback = 200,
    .low = 1,
    .high = 1400,
    .max = 1e6,
    .help = "host time of a graph launch for each node",
    .source =
        "NVIDIA Technical Blog, Constant Time Launch for Straight-Line CUDA Graphs: 0.2 us "
        "before CUDA 12.6, 1 ns since; traced first launches took 1.2 to 1.4 us"};
inline constexpr ParamSpec kGraphGapParam = {
    .name = "gap",
    .unit = Unit::kDuration,
    .fallback = 500,
    .low = 0,
    .high = 1000,
    .max = 1e6,
    .help = "dead time between dependent kernels of a graph",
    .source =
        "NVIDIA Technical Blog, Getting Started with CUDA Graphs: 3.4 us for each kernel "
        "of 2.9 us; traced graphs on A100 and MI300X: median 0, at most 2 us"};

enum class CaptureScope : uint8_t {
  kPartial,  // between what prevents capture
  kStep,     // the whole step: what can leave it does
  kLayer,    // forward and backward of one layer at a time
};

struct CaptureOptions {
  CaptureScope scope = CaptureScope::kPartial;
  int depth = 1;                             // kLayer: modules at this depth, 1 = the outermost
  double launch = 0, per_node = 0, gap = 0;  // ns
  // Runs of fewer launches stay as they are. 0: those stay whose graph launch takes longer than
  // the host work that it stands for.
  size_t min_launches = 0;
  // All memory is reserved before the first step, and what the framework does around launches is
  // done before it, too: also next to what cannot be captured.
  bool ahead_of_time = false;
};

// Of `graphs` and `aot`: "step" lets everything leave the step that can.
inline CaptureScope CaptureScopeOf(const Params& params) {
  if (params.text("scope") == "step") return CaptureScope::kStep;
  return params.text("scope") == "layer" ? CaptureScope::kLayer : CaptureScope::kPartial;
}

// What prevents capture is in the conditions of `edit`, with its place and its host time. `of`: the
// options of an optimization with these parameters. At other values of those that have a range, an
// end says whether it needs other edits (AtEnds::kGaps).
absl::Status CaptureLaunches(CaptureOptions (*of)(const Params& params), const Params& params,
                             Editor& edit);

}  // namespace daydream
