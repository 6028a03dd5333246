// Names of ranges and kernels that mean something to us.
#pragma once

#include <string_view>

#include "base/text.h"

namespace daydream {

// Made by the reader of recordings: a training step "12" that the program marked; the same with
// its layers marked, which costs time; and the stretch in which a thread works on a backward pass
// that another thread called.
inline constexpr std::string_view kStepRange = "daydream::step ";
inline constexpr std::string_view kLabelledStepRange = "daydream::labelled step ";
inline constexpr std::string_view kEngineRange = "torch::autograd::engine";
// By the same: what lies between two windows of steps, on every thread.
inline constexpr std::string_view kNotRecordedRange = "daydream::not recorded";

// Around a backward pass, on the thread that calls it. The PyTorch profiler's name.
inline constexpr std::string_view kBackwardRange = "## backward ##";

// Around a step of an optimizer and what goes with it ("Optimizer.step#SGD.step").
inline bool IsOptimizerRange(std::string_view name) {
  return name.starts_with("Optimizer.") || name == "## optimizer ##";
}

// Kernels of NCCL and RCCL, in which ranks meet.
inline bool IsCollectiveKernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || Contains(name, "ncclKernel") ||
         Contains(name, "ncclDevKernel");
}

inline bool IsMarkedStep(std::string_view name) {
  return name.starts_with(kStepRange) || name.starts_with(kLabelledStepRange);
}

}  // namespace daydream
