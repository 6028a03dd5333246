// Layers: the kernels of their forward and backward passes with the work each one does.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "examples/framework.h"
#include "examples/op.h"

namespace daydream::examples {
namespace {

uint32_t Blocks(int64_t work, int64_t each) {
  return static_cast<uint32_t>(std::max<int64_t>(1, (work + each - 1) / each));
}

// Two blocks of a matrix kernel fit a multiprocessor. The last wave is rarely full: the share of
// the peak is what is left of it, 78 % at best.
int64_t MatrixPermille(int64_t blocks) {
  int64_t wave = 2 * kMultiprocessors;
  int64_t waves = (blocks + wave - 1) / wave;
  return std::max<int64_t>(120, 780 * blocks / (waves * wave));
}

constexpr std::string_view kAdd = "CUDAFunctor_add<float>";
constexpr std::string_view kClamp =
    "(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, "
    "c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}";
constexpr std::string_view kThreshold =
    "BinaryFunctor<float, float, float, at::native::(anonymous "
    "namespace)::threshold_kernel_impl<float>(at::TensorIteratorBase&, float, float)";

}  // namespace

void Framework::LaunchConvolution(std::string_view name, int64_t m, int64_t n, int64_t k,
                                  int64_t bytes) {
  int64_t blocks = int64_t{Blocks(m, 128)} * Blocks(n, 64);
  // Few output tiles: the sum over k is split so that the GPU fills.
  int64_t split = std::clamp<int64_t>(2 * kMultiprocessors / blocks, 1, 32);
  machine_.Launch({.name = name,
                   .flops = 2 * m * n * k,
                   .bytes = bytes,
                   .grid = {Blocks(m, 128), Blocks(n, 64), static_cast<uint32_t>(split)},
                   .threads = 128,
                   .registers = 122,
                   .shared_bytes = 24576,
                   .flops_permille = MatrixPermille(blocks * split)});
}

void Framework::LaunchGemm(std::string_view layout, int64_t batch, int64_t m, int64_t n,
                           int64_t k) {
  bool small = Blocks(m, 128) * int64_t{Blocks(n, 64)} * batch < kMultiprocessors;
  int64_t tile_m = small ? 32 : 128, tile_n = small ? 32 : 64;
  int64_t blocks = int64_t{Blocks(m, tile_m)} * Blocks(n, tile_n) * batch;
  std::string name = small ? fmt::format("ampere_sgemm_32x32_sliced1x4_{}", layout)
                           : fmt::format("ampere_sgemm_128x64_{}", layout);
  machine_.Launch({.name = name,
                   .flops = 2 * batch * m * n * k,
                   .bytes = 4 * batch * (m * k + k * n + m * n),
                   .grid = {Blocks(m, tile_m), Blocks(n, tile_n), static_cast<uint32_t>(batch)},
                   .threads = 128,
                   .registers = small ? 86u : 122u,
                   .shared_bytes = small ? 32768u : 12544u,
                   .flops_permille = MatrixPermille(blocks)});
}

Shape Framework::Conv2d(const Shape& x, int64_t out, int64_t size, int64_t stride, int64_t padding,
                        bool needs_input_gradient) {
  Shape w{out, x[1], size, size};
  int64_t height = (x[2] + 2 * padding - size) / stride + 1;
  Shape y{x[0], out, height, height};
  parameters_.push_back(w);
  int64_t sequence = sequence_++;
  int64_t m = y[0] * height * height, k = x[1] * size * size;
  int64_t bytes = 4 * (Elements(x) + Elements(w) + Elements(y));
  {
    Op conv2d(*this, "aten::conv2d",
              {Tensor(x), Tensor(w), None(), List(), List(), List(), Scalar()}, sequence);
    Op convolution(
        *this, "aten::convolution",
        {Tensor(x), Tensor(w), None(), List(), List(), List(), Scalar(), List(), Scalar()},
        sequence);
    Op inner(*this, "aten::_convolution",
             {Tensor(x), Tensor(w), None(), List(), List(), List(), Scalar(), List(), Scalar(),
              Scalar(), Scalar(), Scalar(), Scalar()});
    Op cudnn(*this, "aten::cudnn_convolution",
             {Tensor(x), Tensor(w), List(), List(), List(), Scalar(), Scalar(), Scalar(), Scalar()},
             -1, 9000);
    LaunchConvolution(size == 1 ? "ampere_scudnn_128x64_relu_small_nn_v1"
                                : "ampere_scudnn_128x64_relu_medium_nn_v1",
                      m, out, k, bytes);
    machine_.Work(3000);
  }
  Remember(
      "ConvolutionBackward0", sequence,
      [=, this] {
        Op op(*this, "aten::convolution_backward",
              {Tensor(y), Tensor(x), Tensor(w), None(), List(), List(), List(), Scalar(), List(),
               Scalar(), List()},
              -1, 12000);
        if (needs_input_gradient) {
          LaunchConvolution(stride > 1 ? "ampere_scudnn_128x64_stridedB_interior_nn_v1"
                                       : "ampere_scudnn_128x64_stridedB_small_nn_v1",
                            x[0] * x[2] * x[3], x[1], out * size * size / (stride * stride), bytes);
          machine_.Work(9000);
        }
        LaunchConvolution("ampere_scudnn_128x64_stridedB_splitK_medium_nn_v1", k, out, m, bytes);
        machine_.Work(3000);
      },
      1);
  return y;
}

Shape Framework::BatchNorm(const Shape& x) {
  int64_t elements = Elements(x);
  Shape c{x[1]};
  parameters_.push_back(c);
  parameters_.push_back(c);
  {  // counts the batches it has seen
    Op op(*this, "aten::add_", {{{}, "long int"}, Scalar(), Scalar()}, -1, 5000);
    LaunchElementwise("CUDAFunctorOnSelf_add<long>", 2, 2);
  }
  int64_t sequence = sequence_++;
  {
    Op batch_norm(*this, "aten::batch_norm",
                  {Tensor(x), Tensor(c), Tensor(c), Tensor(c), Tensor(c), Scalar(), Scalar(),
                   Scalar(), Scalar()},
                  sequence);
    Op impl(*this, "aten::_batch_norm_impl_index",
            {Tensor(x), Tensor(c), Tensor(c), Tensor(c), Tensor(c), Scalar(), Scalar(), Scalar(),
             Scalar()},
            sequence);
    Op cudnn(*this, "aten::cudnn_batch_norm",
             {Tensor(x), Tensor(c), Tensor(c), Tensor(c), Tensor(c), Scalar(), Scalar(), Scalar()},
             sequence, 8000);
    for (int i = 0; i < 4; ++i) Empty(*this);
    machine_.Launch({.name = "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, "
                             "1, true>(cudnnTensorStruct, float const*, cudnnTensorStruct)",
                     .flops = 8 * elements,
                     .bytes = 4 * 3 * elements,
                     .grid = {static_cast<uint32_t>(x[1]), 1, 1},
                     .threads = 512,
                     .registers = 40,
                     .shared_bytes = 4608});
    machine_.Work(3000);
  }
  Remember(
      "CudnnBatchNormBackward0", sequence,
      [=, this] {
        Op op(*this, "aten::cudnn_batch_norm_backward",
              {Tensor(x),
               Tensor(x),
               Tensor(c),
               Tensor(c),
               Tensor(c),
               Tensor(c),
               Tensor(c),
               Scalar(),
               {{0}, "unsigned char"}},
              -1, 8000);
        for (int i = 0; i < 3; ++i) Empty(*this);
        machine_.Launch({.name = "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, "
                                 "true, 1>(float, float, float, float, cudnnTensorStruct)",
                         .flops = 12 * elements,
                         .bytes = 4 * 5 * elements,
                         .grid = {static_cast<uint32_t>(x[1]), 1, 1},
                         .threads = 512,
                         .registers = 40,
                         .shared_bytes = 400});
        machine_.Work(3000);
      },
      2);
  return x;
}

Shape Framework::Relu(const Shape& x) {
  int64_t sequence = sequence_++;
  {
    Op op(*this, "aten::relu_", {Tensor(x)}, sequence);
    Elementwise("aten::clamp_min_", kClamp, x, 2);
  }
  Remember("ReluBackward0", sequence,
           [=, this] { Elementwise("aten::threshold_backward", kThreshold, x, 3); });
  return x;
}

Shape Framework::Add(const Shape& x, bool in_place) {
  int64_t sequence = sequence_++;
  Elementwise(in_place ? "aten::add_" : "aten::add", kAdd, x, 3, sequence);
  // The gradient of a residual branch is added to that of the other one.
  Remember("AddBackward0", sequence, [=, this] { Elementwise("aten::add_", kAdd, x, 3); });
  return x;
}

Shape Framework::MaxPool(const Shape& x) {
  Shape y{x[0], x[1], x[2] / 2, x[3] / 2};
  int64_t sequence = sequence_++;
  {
    Op pool(*this, "aten::max_pool2d", {Tensor(x), List(), List(), List(), List(), Scalar()},
            sequence);
    Op op(*this, "aten::max_pool2d_with_indices",
          {Tensor(x), List(), List(), List(), List(), Scalar()}, sequence, 8000);
    machine_.Launch({.name = "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, "
                             "float>(int, float const*, long, long, long)",
                     .flops = 9 * Elements(y),
                     .bytes = 4 * Elements(x) + 12 * Elements(y),
                     .grid = {Blocks(Elements(y), 256), 1, 1},
                     .threads = 256});
  }
  Remember("MaxPool2DWithIndicesBackward0", sequence, [=, this] {
    Op op(*this, "aten::max_pool2d_with_indices_backward",
          {Tensor(y), Tensor(x), List(), List(), List(), List(), Scalar(), {y, "long int"}}, -1,
          8000);
    Elementwise("aten::zero_", "FillFunctor<float>", x, 1);
    machine_.Launch({.name = "void at::native::(anonymous namespace)::max_pool_backward_nchw<float,"
                             " float>(float const*, long const*, int, long, long)",
                     .flops = Elements(x),
                     .bytes = 4 * Elements(x) + 12 * Elements(y),
                     .grid = {Blocks(Elements(x), 256), 1, 1},
                     .threads = 256});
  });
  return y;
}

Shape Framework::GlobalAveragePool(const Shape& x) {
  Shape y{x[0], x[1], 1, 1};
  int64_t sequence = sequence_++;
  {
    Op pool(*this, "aten::adaptive_avg_pool2d", {Tensor(x), List()}, sequence);
    Op op(*this, "aten::mean", {Tensor(x), List(), Scalar(), None()}, sequence, 8000);
    machine_.Launch({.name = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
                             "at::native::MeanOps<float, float, float, float>, unsigned int> >",
                     .flops = Elements(x),
                     .bytes = 4 * (Elements(x) + Elements(y)),
                     .grid = {Blocks(Elements(y), 16), 1, 1},
                     .threads = 512});
  }
  Remember("MeanBackward1", sequence, [=, this] { Elementwise("aten::div", kAdd, x, 2); });
  return y;
}

Shape Framework::View(std::string_view op, const Shape& x, Shape to) {
  Op span(*this, op, {Tensor(x), List()}, -1, 1500);
  return to;
}

}  // namespace daydream::examples
