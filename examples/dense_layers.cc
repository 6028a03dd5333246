// Layers of transformers and the loss, and the optimizers: many small kernels.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "examples/framework.h"
#include "examples/op.h"

namespace daydream::examples {
namespace {

uint32_t Rows(int64_t rows, int64_t each) {
  return static_cast<uint32_t>(std::max<int64_t>(1, (rows + each - 1) / each));
}

// A kernel that reads and writes each row of {rows, width} `passes` times in all.
Kernel RowKernel(std::string_view name, int64_t rows, int64_t width, int64_t passes) {
  return {.name = name,
          .flops = 8 * rows * width,
          .bytes = 4 * passes * rows * width,
          .grid = {Rows(rows, 4), 1, 1},
          .threads = 128};
}

}  // namespace

Shape Framework::Linear(const Shape& x, int64_t out) {
  int64_t in = x.back(), rows = Elements(x) / in;
  Shape w{out, in}, b{out}, y = x;
  y.back() = out;
  parameters_.push_back(w);
  parameters_.push_back(b);
  int64_t sequence = sequence_++;
  {
    Op linear(*this, "aten::linear", {Tensor(x), Tensor(w), Tensor(b)}, sequence);
    if (amp_) {
      for (const Shape& read : {x, w, b}) Cast(read, "float");
    }
    { Op t(*this, "aten::t", {Tensor(w)}, sequence, 3000); }
    Op addmm(*this, "aten::addmm",
             {Tensor(b), Tensor({rows, in}), Tensor({in, out}), Scalar(), Scalar()}, sequence,
             9000);
    LaunchGemm("tn", 1, rows, out, in);
    machine_.Work(2000);
  }
  Remember(
      "AddmmBackward0", sequence,
      [=, this] {
        {
          Op mm(*this, "aten::mm", {Tensor({rows, out}), Tensor({out, in})}, -1, 7000);
          LaunchGemm("nn", 1, rows, in, out);
        }
        {
          Op mm(*this, "aten::mm", {Tensor({out, rows}), Tensor({rows, in})}, -1, 7000);
          LaunchGemm("nt", 1, out, in, rows);
        }
        Op sum(*this, "aten::sum", {Tensor({rows, out}), List(), Scalar(), None()}, -1, 7000);
        machine_.Launch(
            RowKernel("void at::native::reduce_kernel<128, 4, at::native::ReduceOp<"
                      "float, at::native::func_wrapper_t<float, at::native::sum_"
                      "functor<float, float, float> >, unsigned int, float, 4> >",
                      rows, out, 1));
        if (amp_) {
          for (const Shape& gradient : {w, b, x}) Cast(gradient, "c10::BFloat16");
        }
      },
      2);
  return y;
}

Shape Framework::LayerNorm(const Shape& x) {
  int64_t width = x.back(), rows = Elements(x) / width;
  Shape w{width};
  parameters_.push_back(w);
  parameters_.push_back(w);
  int64_t sequence = sequence_++;
  {
    Op norm(*this, "aten::layer_norm",
            {Tensor(x), List(), Tensor(w), Tensor(w), Scalar(), Scalar()}, sequence);
    Op native(*this, "aten::native_layer_norm", {Tensor(x), List(), Tensor(w), Tensor(w), Scalar()},
              sequence, 3000);
    for (int i = 0; i < 3; ++i) Empty(*this);
    machine_.Launch(
        RowKernel("void at::native::(anonymous namespace)::vectorized_layer_norm_"
                  "kernel<float, float>(int, float, float const*, float const*)",
                  rows, width, 2));
    machine_.Work(2000);
  }
  Remember(
      "NativeLayerNormBackward0", sequence,
      [=, this] {
        Op op(*this, "aten::native_layer_norm_backward",
              {Tensor(x), Tensor(x), List(), Tensor({rows, 1}), Tensor({rows, 1}), Tensor(w),
               Tensor(w), List()},
              -1, 5000);
        for (int i = 0; i < 3; ++i) Empty(*this);
        machine_.Launch(
            RowKernel("void at::native::(anonymous namespace)::layer_norm_grad_input_"
                      "kernel<float, float>(float const*, float const*)",
                      rows, width, 3));
        machine_.Work(2000);
        machine_.Launch(
            RowKernel("void at::native::(anonymous namespace)::GammaBetaBackwardCUDA"
                      "Kernel<float, float>(long, long, float const*)",
                      rows, width, 2));
      },
      2);
  return x;
}

Shape Framework::Gelu(const Shape& x) {
  int64_t sequence = sequence_++;
  Elementwise("aten::gelu", "GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda(float)#1}", x, 2,
              sequence);
  Remember("GeluBackward0", sequence, [=, this] {
    Elementwise("aten::gelu_backward", "GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&)", x, 3);
  });
  return x;
}

Shape Framework::Softmax(const Shape& x) {
  int64_t width = x.back(), rows = Elements(x) / width;
  int64_t sequence = sequence_++;
  {
    Op op(*this, "aten::softmax", {Tensor(x), Scalar(), None()}, sequence);
    Op inner(*this, "aten::_softmax", {Tensor(x), Scalar(), Scalar()}, sequence, 7000);
    machine_.Launch(
        RowKernel("void (anonymous namespace)::softmax_warp_forward<float, float, "
                  "float, 6, false, false>(float*, float const*, int, int, int)",
                  rows, width, 2));
  }
  Remember("SoftmaxBackward0", sequence, [=, this] {
    Op op(*this, "aten::_softmax_backward_data", {Tensor(x), Tensor(x), Scalar(), Scalar()}, -1,
          7000);
    machine_.Launch(
        RowKernel("void (anonymous namespace)::softmax_warp_backward<float, float, "
                  "float, 6, false, false>(float*, float const*, int, int, int)",
                  rows, width, 3));
  });
  return x;
}

Shape Framework::Bmm(const Shape& x, const Shape& y) {
  int64_t batch = x[0], m = x[1], k = x[2], n = y[2];
  int64_t sequence = sequence_++;
  {
    Op op(*this, "aten::bmm", {Tensor(x), Tensor(y)}, sequence, 9000);
    LaunchGemm("nn", batch, m, n, k);
  }
  Shape out{batch, m, n};
  Remember("BmmBackward0", sequence, [=, this] {
    {
      Op left(*this, "aten::bmm", {Tensor(out), Tensor({batch, n, k})}, -1, 9000);
      LaunchGemm("nt", batch, m, k, n);
    }
    Op right(*this, "aten::bmm", {Tensor({batch, k, m}), Tensor(out)}, -1, 9000);
    LaunchGemm("tn", batch, k, n, m);
  });
  return out;
}

void Framework::CrossEntropy(const Shape& logits) {
  int64_t classes = logits.back(), rows = Elements(logits) / classes;
  Input target{{rows}, "long int"};
  int64_t sequence = sequence_;
  sequence_ += 2;
  {
    Op loss(*this, "aten::cross_entropy_loss",
            {Tensor(logits), target, None(), Scalar(), Scalar(), Scalar()}, sequence);
    {
      Op op(*this, "aten::log_softmax", {Tensor(logits), Scalar(), None()}, sequence);
      Op inner(*this, "aten::_log_softmax", {Tensor(logits), Scalar(), Scalar()}, sequence, 6000);
      machine_.Launch(
          RowKernel("void (anonymous namespace)::softmax_warp_forward<float, float, "
                    "float, 10, true, false>(float*, float const*, int, int, int)",
                    rows, classes, 2));
    }
    Op op(*this, "aten::nll_loss_nd", {Tensor(logits), target, None(), Scalar(), Scalar()},
          sequence + 1);
    Op inner(*this, "aten::nll_loss_forward", {Tensor(logits), target, None(), Scalar(), Scalar()},
             sequence + 1, 6000);
    machine_.Launch(
        RowKernel("void at::native::(anonymous namespace)::nll_loss_forward_reduce_"
                  "cuda_kernel_2d<float, float, long>(float*, float*, float*)",
                  1, rows, 1));
  }
  Remember("LogSoftmaxBackward0", sequence, [=, this] {
    Op op(*this, "aten::_log_softmax_backward_data",
          {Tensor(logits), Tensor(logits), Scalar(), Scalar()}, -1, 6000);
    machine_.Launch(
        RowKernel("void (anonymous namespace)::softmax_warp_backward<float, float, "
                  "float, 10, true, false>(float*, float const*, int, int, int)",
                  rows, classes, 3));
  });
  Remember("NllLossBackward0", sequence + 1, [=, this] {
    Op op(*this, "aten::nll_loss_backward",
          {Tensor({}), Tensor(logits), target, None(), Scalar(), Scalar(), Tensor({})}, -1, 6000);
    Elementwise("aten::zero_", "FillFunctor<float>", logits, 1);
    machine_.Launch(
        RowKernel("void at::native::(anonymous namespace)::nll_loss_backward_reduce_"
                  "cuda_kernel_2d<float, long>(float*, float const*, long const*)",
                  1, rows, 1));
  });
}

void Framework::SgdStep() {
  for (const Shape& parameter : parameters_) {
    machine_.Work(3000);
    Elementwise("aten::add", "CUDAFunctor_add<float>", parameter, 3);   // weight decay
    Elementwise("aten::mul_", "MulFunctor<float>", parameter, 2);       // momentum
    Elementwise("aten::add_", "CUDAFunctor_add<float>", parameter, 3);  // gradient
    Elementwise("aten::add_", "CUDAFunctor_add<float>", parameter, 3);  // the parameter itself
  }
}

void Framework::AdamStep() {
  for (const Shape& parameter : parameters_) {
    machine_.Work(12000);  // step count and bias corrections, in Python
    Elementwise("aten::lerp_", "lerp_scalar_kernel<float>", parameter, 3);
    Elementwise("aten::mul_", "MulFunctor<float>", parameter, 2);
    Elementwise("aten::addcmul_", "addcmul_cuda_kernel<float>", parameter, 4);
    Elementwise("aten::sqrt", "sqrt_kernel_cuda<float>", parameter, 2);
    Elementwise("aten::div_", "MulFunctor<float>", parameter, 2);
    Elementwise("aten::add_", "CUDAFunctorOnSelf_add<float>", parameter, 2);
    Elementwise("aten::addcdiv_", "addcdiv_cuda_kernel<float>", parameter, 4);
  }
}

}  // namespace daydream::examples
