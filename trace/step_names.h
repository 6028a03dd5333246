// Names by which programs call their training steps.
#pragma once

#include <string_view>

namespace daydream {

// "iteration 7", "Step: 12", "train_step_3", "ProfilerStep#7": a word for a step and a number.
bool IsStepName(std::string_view name);

}  // namespace daydream
