// What an optimizer does besides when its step is replayed by a CUDA graph.
#pragma once

#include <string>
#include <vector>

#include "transforms/core/editor.h"

namespace daydream {

// Adam and AdamW of PyTorch count their steps on the host, which a graph cannot replay. With
// capturable=True the count is a tensor on the GPU, and so is what follows from it. In the loop
// over parameters (foreach=False) that is so many kernels of one element for each parameter
// (torch/optim/adam.py, _single_tensor_adam): the count, its two powers, each taken from 1, a
// quotient, a negation, a root, a product, and a quotient; a number divided by a tensor takes two.
inline constexpr size_t kCapturableKernels = 12;

class CapturableLoop {
 public:
  // O(tasks).
  explicit CapturableLoop(const Graph& graph);

  // Kernels that come before this one, the last of its parameter, in a graph; 0: none.
  size_t Before(TaskId kernel) const;
  // Whether a graph needs them at all.
  bool adds() const { return !last_.empty(); }
  // What one of them takes: as the shortest of the optimizer, which go over biases and norms.
  Duration time() const { return time_; }
  // "Adam"; empty: no optimizer that could need them.
  const std::string& optimizer() const { return optimizer_; }

 private:
  const Graph& graph_;
  std::string optimizer_;
  std::vector<bool> last_;  // by name: the last kernel of a parameter; empty: no such loop
  Duration time_;
};

}  // namespace daydream
