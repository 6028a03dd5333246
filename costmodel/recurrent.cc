#include "costmodel/recurrent.h"

#include <algorithm>

#include "costmodel/op_shape.h"
#include "costmodel/op_time.h"
#include "costmodel/roofline.h"

namespace daydream {
namespace {

constexpr int64_t kGates = 4;
// Numbers that a cell moves for each of its outputs: the gates of both products, the old and the
// new state, and the output.
constexpr double kCellElements = 2 * kGates + 3;

}  // namespace

double LstmShape::Flops() const {
  const double rows = static_cast<double>(steps) * static_cast<double>(batch);
  const auto h = static_cast<double>(width);
  const double below = static_cast<double>(inputs) + static_cast<double>(layers - 1) * h;
  return 2 * rows * kGates * h * (below + static_cast<double>(layers) * h);
}

LstmTime TimeOfLstm(const DeviceSpec& device, const LstmShape& s, DType dtype) {
  const auto layers = static_cast<double>(s.layers), steps = static_cast<double>(s.steps);
  const auto product = [&](int64_t m, int64_t k) {
    return PredictOp(device, WorkOfProduct({.m = m, .n = kGates * s.width, .k = k}), dtype);
  };
  const int64_t rows = s.steps * s.batch;
  const OpTime first = product(rows, s.inputs), state = product(rows, s.width);
  const OpTime step = product(s.batch, s.width);
  const double cell_elements =
      kCellElements * static_cast<double>(s.batch) * static_cast<double>(s.width);
  const double cell = MemoryNs(device, cell_elements * DTypeBytes(dtype));
  // Of all layers but the first, the input is a state, too.
  const double states = 2 * layers - 1;
  const auto whole = [&](double OpTime::*part) {
    return first.*part + states * state.*part + layers * steps * cell;
  };
  LstmTime time;
  time.link_ns = std::max(step.ns, kKernelFloorNs) + std::max(cell, kKernelFloorNs);
  time.chain_ns = (steps + layers - 1) * time.link_ns;
  time.work_ns = whole(&OpTime::ns);
  time.ns = std::max(time.work_ns, time.chain_ns);
  time.low_ns = whole(&OpTime::low_ns);
  time.high_ns = std::max(whole(&OpTime::high_ns), whole(&OpTime::sustained_ns)) + time.chain_ns;
  return time;
}

}  // namespace daydream
