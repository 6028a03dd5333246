// Names of ranges that mean something to us.
#pragma once

#include <string_view>

namespace daydream {

// Made by the reader of recordings: a training step "12" that the program marked; the same with
// its layers marked, which costs time; and the stretch in which a thread works on a backward pass
// that another thread called.
inline constexpr std::string_view kStepRange = "daydream::step ";
inline constexpr std::string_view kLabelledStepRange = "daydream::labelled step ";
inline constexpr std::string_view kEngineRange = "torch::autograd::engine";

// Around a backward pass, on the thread that calls it. The PyTorch profiler's name.
inline constexpr std::string_view kBackwardRange = "## backward ##";

inline bool IsMarkedStep(std::string_view name) {
  return name.starts_with(kStepRange) || name.starts_with(kLabelledStepRange);
}

}  // namespace daydream
