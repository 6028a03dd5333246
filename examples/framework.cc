#include "examples/framework.h"

#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "examples/op.h"

namespace daydream::examples {
namespace {

// Host times around operators, in the range that published A100 traces show (examples/README.md).
constexpr int64_t kToBackward = 80000;    // main thread -> autograd thread
constexpr int64_t kFromBackward = 40000;  // and back
constexpr int64_t kNode = 4000;           // autograd engine, per node

OpDetail Describe(Machine& machine, std::initializer_list<Input> inputs, int64_t sequence,
                  bool backward) {
  std::string shapes, types;
  for (const Input& input : inputs) {
    shapes += fmt::format("{}[{}]", shapes.empty() ? "" : ", ", fmt::join(input.shape, ", "));
    types += fmt::format("{}\"{}\"", types.empty() ? "" : ", ", input.type);
  }
  OpDetail detail{.sequence = sequence};
  if (sequence >= 0) detail.forward_thread = backward ? 1 : 0;
  if (inputs.size() > 0) {
    detail.shapes = machine.Name("[" + shapes + "]");
    detail.types = machine.Name("[" + types + "]");
  }
  return detail;
}

std::string ModuleName(std::map<std::string, std::string, std::less<>>& names,
                       std::map<std::string, int, std::less<>>& of_type, std::string_view type,
                       std::string_view key) {
  auto [name, fresh] = names.try_emplace(std::string(key));
  if (fresh) name->second = fmt::format("nn.Module: {}_{}", type, of_type[std::string(type)]++);
  return name->second;
}

}  // namespace

int64_t Elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Op::Op(Framework& framework, std::string_view name, std::initializer_list<Input> inputs,
       int64_t sequence, int64_t work_ns)
    : framework_(framework),
      detail_(Describe(framework.machine_, inputs, sequence, framework.backward_)),
      span_(framework.machine_, EventKind::kOp, name, &detail_) {
  framework_.machine_.Work(work_ns);
}

void Empty(Framework& framework) {
  Op op(framework, "aten::empty", {List(), Scalar(), Scalar(), None(), None(), None()}, -1, 4000);
}

Framework::Module::Module(Framework& framework, std::string_view type, std::string_view key)
    : span_(framework.machine_, EventKind::kFrame,
            ModuleName(framework.module_names_, framework.modules_of_type_, type, key)) {
  framework.machine_.Work(3000);
}

void Framework::Remember(std::string name, int64_t sequence, std::function<void()> run,
                         int gradients) {
  if (!again_) tape_.push_back({std::move(name), sequence, std::move(run), gradients});
}

void Framework::RunAgainInBackward(std::function<void()> forward) {
  Remember("CheckpointFunctionBackward", -1, [this, forward = std::move(forward)] {
    const std::vector<Shape> parameters = parameters_;
    again_ = true;
    forward();
    again_ = false;
    parameters_ = parameters;
  });
}

void Framework::Cast(const Shape& shape, std::string_view from) {
  const Input input{shape, from};
  Op to(*this, "aten::to", {input, Scalar(), Scalar(), Scalar(), None()}, -1, 1000);
  Op cast(*this, "aten::_to_copy", {input, Scalar(), None(), None(), Scalar(), None()}, -1, 1500);
  Op copy(*this, "aten::copy_", {input, input, Scalar()}, -1, 2500);
  LaunchElementwise("direct_copy_kernel_cuda", Elements(shape), 1);
}

void Framework::Backward() {
  Shape loss{};
  {
    Op op(*this, "aten::ones_like", {Tensor(loss), Scalar(), None(), None(), None(), None()});
    Empty(*this);
    Elementwise("aten::fill_", "FillFunctor<float>", loss, 1);
  }
  machine_.SwitchTo(Machine::Thread::kAutograd, kToBackward);
  backward_ = true;
  for (; !tape_.empty(); tape_.pop_back()) {
    const Tape& node = tape_.back();
    {
      Op outer(*this, "autograd::engine::evaluate_function: " + node.name, {}, node.sequence);
      Op inner(*this, node.name, {}, node.sequence, kNode);
      node.run();
    }
    for (int i = 0; i < node.gradients; ++i) {
      const std::string accumulate = "torch::autograd::AccumulateGrad";
      Op outer(*this, "autograd::engine::evaluate_function: " + accumulate, {}, -1, 1500);
      Op inner(*this, accumulate, {}, -1, 1500);
      Op detach(*this, "aten::detach", {Tensor({})}, -1, 2000);
    }
  }
  backward_ = false;
  machine_.SwitchTo(Machine::Thread::kMain, kFromBackward);
}

void Framework::LaunchElementwise(std::string_view functor, int64_t elements, int64_t arrays) {
  std::string name = fmt::format(
      "void at::native::vectorized_elementwise_kernel<4, at::native::{}, "
      "at::detail::Array<char*, {}> >(int, at::native::{}, at::detail::Array<char*, {}>)",
      functor, arrays, functor, arrays);
  auto blocks = static_cast<uint32_t>((elements + 511) / 512);
  machine_.Launch({.name = name,
                   .flops = elements,
                   .bytes = elements * arrays * 4,
                   .grid = {blocks, 1, 1},
                   .threads = 128,
                   .registers = 22});
}

void Framework::Elementwise(std::string_view op, std::string_view functor, const Shape& shape,
                            int64_t arrays, int64_t sequence) {
  Op span(*this, op, {Tensor(shape), Tensor(shape), Scalar()}, sequence, 6000);
  LaunchElementwise(functor, Elements(shape), arrays);
  machine_.Work(1500);
}

void Framework::ToGpu(const Shape& x, std::string_view type, int64_t element_bytes, bool pinned) {
  Input input{x, type};
  Op to(*this, "aten::to", {input, Scalar(), Scalar(), Scalar(), Scalar(), None()});
  Op cast(*this, "aten::_to_copy", {input, Scalar(), None(), Scalar(), None(), Scalar(), None()});
  Empty(*this);
  Op copy(*this, "aten::copy_", {input, input, Scalar()}, -1, 6000);
  if (pinned) {
    machine_.CopyPinnedToGpu(Elements(x) * element_bytes);
  } else {
    machine_.CopyToGpu(Elements(x) * element_bytes);
  }
}

void Framework::Item() {
  Op item(*this, "aten::item", {Tensor({})}, -1, 1500);
  Op dense(*this, "aten::_local_scalar_dense", {Tensor({})}, -1, 4000);
  machine_.ReadBack(4);
}

}  // namespace daydream::examples
