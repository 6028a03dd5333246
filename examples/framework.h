// The operators of a deep-learning framework, as a profiler sees them: nested ops with shapes and
// sequence numbers, their kernels, and the backward pass that they leave behind on a tape.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "examples/machine.h"

namespace daydream::examples {

using Shape = std::vector<int64_t>;
int64_t Elements(const Shape& shape);

class Framework {
 public:
  explicit Framework(Machine& machine) : machine_(machine) {}
  Machine& machine() { return machine_; }

  // A module's forward(): a frame named as the framework numbers them, "nn.Module: Conv2d_3".
  // `key` is one per module object, so that a module keeps its number from step to step.
  class Module {
   public:
    Module(Framework& framework, std::string_view type, std::string_view key);

   private:
    Machine::Span span_;
  };

  // Layers. Each returns the shape of its output, and puts its backward pass on the tape.
  Shape Conv2d(const Shape& x, int64_t out, int64_t size, int64_t stride, int64_t padding,
               bool needs_input_gradient = true);
  Shape BatchNorm(const Shape& x);
  Shape Relu(const Shape& x);
  Shape Add(const Shape& x, bool in_place);
  Shape MaxPool(const Shape& x);
  Shape GlobalAveragePool(const Shape& x);
  Shape Linear(const Shape& x, int64_t out);
  Shape LayerNorm(const Shape& x);
  Shape Gelu(const Shape& x);
  Shape Softmax(const Shape& x);
  // Batched x * y: {b, m, k} and {b, k, n}.
  Shape Bmm(const Shape& x, const Shape& y);
  Shape View(std::string_view op, const Shape& x, Shape to);
  void CrossEntropy(const Shape& logits);

  // Plays the tape from its end on the autograd thread while the main thread waits.
  void Backward();
  // One update op after the other for each parameter, as with foreach=False.
  void SgdStep();
  void AdamStep();
  // Host memory to the GPU: aten::to of a batch.
  void ToGpu(const Shape& x, std::string_view type, int64_t element_bytes, bool pinned = false);
  void Item();
  // As autocast: linear layers cast what they read, and run on tensor cores.
  void set_amp(bool amp) { amp_ = amp; }
  // Before the backward pass of what is on the tape: `forward` once more, as checkpointing does.
  void RunAgainInBackward(std::function<void()> forward);
  // Forgets the parameters of the last step; call it before each forward pass.
  void BeginForward() { parameters_.clear(); }

 private:
  friend class Op;
  struct Tape {
    std::string name;  // "ConvolutionBackward0"
    int64_t sequence;
    std::function<void()> run;
    int gradients = 0;  // parameters whose gradient it stores
  };
  void Remember(std::string name, int64_t sequence, std::function<void()> run, int gradients = 0);
  void LaunchElementwise(std::string_view functor, int64_t elements, int64_t arrays);
  void LaunchConvolution(std::string_view name, int64_t m, int64_t n, int64_t k, int64_t bytes);
  void LaunchGemm(std::string_view layout, int64_t batch, int64_t m, int64_t n, int64_t k);
  void Elementwise(std::string_view op, std::string_view functor, const Shape& shape,
                   int64_t arrays, int64_t sequence = -1);

  Machine& machine_;
  std::vector<Tape> tape_;
  std::vector<Shape> parameters_;
  std::map<std::string, std::string, std::less<>> module_names_;
  std::map<std::string, int, std::less<>> modules_of_type_;
  int64_t sequence_ = 1000;
  void Cast(const Shape& shape, std::string_view from);
  bool backward_ = false;
  bool amp_ = false;
  bool again_ = false;  // nothing goes on the tape
};

}  // namespace daydream::examples
