// Rows that are predicted from composed steps (compose.h) and judged by measured totals.
#pragma once

#include <string>
#include <vector>

#include "tests/accuracy/judged.h"

namespace daydream {

struct Composed {
  std::vector<JudgedRow> rows;
  std::vector<std::string> excluded;  // what and why
};

bool HasComposedData();
// Deterministic, in a fixed order.
Composed JudgeComposed();

}  // namespace daydream
