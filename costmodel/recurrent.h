// LSTM layers, forward, as cuDNN runs them: for each step of each layer a product with the weights
// of its input, one with those of its state, and a pointwise kernel. A step waits for the one
// before and the layer below, so that as many layers run beside each other as there are:
//
//   time = max(all products and cells at full speed, steps + layers - 1 links of the chain)
//
// No constant was fitted. One shape was measured, on one GPU, in fp32 (docs/cost-model.md).
#pragma once

#include <cstdint>

#include "costmodel/device.h"

namespace daydream {

struct LstmShape {
  int64_t layers = 1, steps = 0, batch = 0, inputs = 0, width = 0;
  double Flops() const;  // forward; backward has twice as many
};

struct LstmTime {
  // Low: as if no step waited, as kernels that keep the weights of the state on the chip nearly
  // do. High: as if nothing overlapped.
  double ns = 0, low_ns = 0, high_ns = 0;
  double work_ns = 0;   // products and cells at full speed
  double chain_ns = 0;  // what the steps wait for one after the other
  double link_ns = 0;   // one of them: a step of one layer
  bool waits() const { return chain_ns > work_ns; }
};

// All of `shape` are positive. A microsecond or two.
LstmTime TimeOfLstm(const DeviceSpec& device, const LstmShape& shape, DType dtype);

}  // namespace daydream
