// Steps of data-parallel training that others measured on several GPUs, predicted from the step on
// one, which is composed (compose.h) of what they published of it.
#pragma once

#include <string>
#include <vector>

#include "tests/accuracy/judged.h"

namespace daydream {

struct ScalingRows {
  std::vector<JudgedRow> rows;
  std::vector<JudgedRow> memory;   // in GB instead of ms
  std::vector<std::string> notes;  // what else is judged: "best bucket ..."
};

bool HasScalingData();
// Deterministic, in a fixed order.
ScalingRows JudgeScaling();
// A section of docs/accuracy.md.
std::string ScalingSection(const ScalingRows& scaling);

}  // namespace daydream
