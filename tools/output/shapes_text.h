// What recorded shapes of operators would make better, in numbers that were measured.
#pragma once

#include <cstdint>
#include <string>

#include "trace/trace.h"

namespace daydream {

struct ShapeCount {
  uint64_t ops = 0, with = 0;
};
ShapeCount CountShapes(const Trace& trace);

// One sentence; empty where most operators have shapes. The numbers are those of
// report/predict/residuals.h.
std::string ShapesText(const ShapeCount& count);

}  // namespace daydream
