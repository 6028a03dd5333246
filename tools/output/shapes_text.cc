#include "tools/output/shapes_text.h"

#include <cmath>

#include <fmt/format.h>

#include "report/predict/residuals.h"
#include "report/text/format.h"

namespace daydream {
namespace {

// How far off nine predictions of this kind in ten are at most.
std::string Within(std::string_view kind, double dose) {
  return FormatPercent(1.645 * ModelErrorOf(kind).sigma * dose, 0);
}

}  // namespace

ShapeCount CountShapes(const Trace& trace) {
  ShapeCount count;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kOp) continue;
    ++count.ops;
    const uint32_t detail = trace.detail[row];
    count.with += detail < trace.ops.size() && trace.ops[detail].shapes.valid() ? 1 : 0;
  }
  return count;
}

std::string ShapesText(const ShapeCount& count) {
  if (count.ops == 0 || count.with * 2 > count.ops) return "";
  const double twice = std::log(2.0);
  return fmt::format(
      "{} of {} have them: record with record_shapes=True, or take them from an execution trace "
      "with --shapes. With them nine predictions in ten are within {} for another GPU (now {}) and "
      "within {} for twice the batch (now {}); memory and attention can be told with them only",
      FormatCount(count.with), Plural(count.ops, "operator"), Within("gpu", 1),
      Within("gpu, no shapes", 1), Within("batch", twice), Within("batch, no shapes", twice));
}

}  // namespace daydream
