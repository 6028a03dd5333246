#include "costmodel/op_shape.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>

namespace daydream {
namespace {

// Larger sizes are damage; products of six of them stay finite as double.
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr size_t kMaxTensors = 1024;

double Count(const Dims& dims) {
  double n = dims.empty() ? 0 : 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

double Sum(const std::vector<Dims>& inputs) {
  double n = 0;
  for (const Dims& dims : inputs) n += Count(dims);
  return n;
}

double Largest(const std::vector<Dims>& inputs) {
  double n = 0;
  for (const Dims& dims : inputs) n = std::max(n, Count(dims));
  return n;
}

int64_t Product(const Dims& dims, size_t begin, size_t end) {
  double n = 1;
  for (size_t i = begin; i < end; ++i) n *= static_cast<double>(dims[i]);
  return static_cast<int64_t>(std::min(n, static_cast<double>(kMaxSize)));
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A[..., m, k] x B[k, n] or B[..., k, n]: matmul's rules without broadcasting of batches.
std::optional<OpWork> Matmul(const Dims& a, const Dims& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  GemmShape shape;
  shape.k = a.back();
  const int64_t rows = a.size() > 1 ? a[a.size() - 2] : 1;
  const int64_t batch_a = a.size() > 2 ? Product(a, 0, a.size() - 2) : 1;
  const int64_t inner = b.size() > 1 ? b[b.size() - 2] : b[0];
  if (inner != shape.k) return std::nullopt;
  shape.n = b.size() > 1 ? b.back() : 1;
  if (b.size() <= 2) {
    shape.m = Product({batch_a, rows}, 0, 2);
  } else {
    shape.m = rows;
    shape.batch = std::max(batch_a, Product(b, 0, b.size() - 2));
  }
  return WorkOfProduct(shape);
}

std::optional<OpWork> Linear(const Dims& input, const Dims& weight) {
  if (input.empty() || weight.size() != 2 || input.back() != weight[1]) return std::nullopt;
  return WorkOfProduct({.m = Product(input, 0, input.size() - 1), .n = weight[0], .k = weight[1]});
}

struct ConvSizes {
  int64_t groups = 1, positions = 0;                      // output positions of the whole batch
  int64_t in_positions = 0, in = 0, out = 0, window = 1;  // channels per group; window size
};

std::optional<ConvSizes> SizesOf(const Dims& input, const Dims& weight, const Dims& output) {
  if (input.size() < 3 || weight.size() != input.size() || output.size() != input.size()) {
    return std::nullopt;
  }
  ConvSizes s;
  if (weight[0] <= 0 || weight[1] <= 0 || input[1] <= 0) return std::nullopt;
  s.groups = std::max<int64_t>(1, input[1] / weight[1]);
  s.in = weight[1];
  s.out = std::max<int64_t>(1, weight[0] / s.groups);
  s.window = Product(weight, 2, weight.size());
  s.positions = Product({output[0], Product(output, 2, output.size())}, 0, 2);
  s.in_positions = Product({input[0], Product(input, 2, input.size())}, 0, 2);
  return s;
}

GemmShape ForwardProduct(const ConvSizes& s) {
  return {.batch = s.groups, .m = s.positions, .n = s.out, .k = s.in * s.window};
}
// As many operations as forward: with a stride, each input position meets fewer outputs.
GemmShape InputGradientProduct(const ConvSizes& s) {
  const double share = s.in_positions > 0
                           ? static_cast<double>(s.positions) / static_cast<double>(s.in_positions)
                           : 1.0;
  const int64_t k = std::llround(static_cast<double>(s.out) * static_cast<double>(s.window) *
                                 std::min(share, 1.0));
  return {.batch = s.groups, .m = s.in_positions, .n = s.in, .k = std::max<int64_t>(k, 1)};
}
GemmShape WeightGradientProduct(const ConvSizes& s) {
  return {.batch = s.groups, .m = s.out, .n = s.in * s.window, .k = s.positions};
}

// A window narrower than the stride leaves elements of each memory sector unused.
double StrideWaste(const Dims& input, const Dims& weight, const Dims& output) {
  if (output.back() <= 0 || weight.back() <= 0) return 1;
  const double stride =
      std::round(static_cast<double>(input.back()) / static_cast<double>(output.back()));
  return std::clamp(stride / static_cast<double>(weight.back()), 1.0, 8.0);
}

OpWork FromConvolution(std::vector<GemmShape> products, std::vector<Operands> operands,
                       double elements) {
  OpWork work;
  work.operands = std::move(operands);
  work.kind = OpWork::Kind::kConv;
  work.products = std::move(products);
  for (const GemmShape& product : work.products) work.flops += product.Flops();
  work.elements = elements * static_cast<double>(work.products.size());
  return work;
}

std::optional<OpWork> Convolution(std::string_view op, const std::vector<Dims>& inputs) {
  if (inputs.size() < 2) return std::nullopt;
  if (IsOneOf(op, {"conv1d", "conv2d", "conv3d", "convolution", "_convolution", "cudnn_convolution",
                   "cudnn_convolution_relu", "miopen_convolution", "thnn_conv2d",
                   "_slow_conv2d_forward", "conv_depthwise2d", "_conv_depthwise2d"})) {
    Dims output = inputs[0];
    if (output.size() > 1 && !inputs[1].empty()) output[1] = inputs[1][0];
    const auto sizes = SizesOf(inputs[0], inputs[1], output);
    if (!sizes) return std::nullopt;
    std::optional<OpWork> work = WorkOfConvolution(inputs[0], inputs[1], output);
    if (work) work->exact = sizes->window == 1;
    return work;
  }
  if (inputs.size() < 3) return std::nullopt;
  // The order of gradient, input and weight differs.
  std::array<size_t, 3> at;  // gradient of the output, input, weight
  if (op == "convolution_backward") {
    at = {0, 1, 2};
  } else if (IsOneOf(op, {"cudnn_convolution_backward", "miopen_convolution_backward"})) {
    at = {1, 0, 2};
  } else {
    return std::nullopt;
  }
  const Dims &gradient = inputs[at[0]], &input = inputs[at[1]], &weight = inputs[at[2]];
  const auto sizes = SizesOf(input, weight, gradient);
  if (!sizes) return std::nullopt;
  const double waste = StrideWaste(input, weight, gradient);
  return FromConvolution({InputGradientProduct(*sizes), WeightGradientProduct(*sizes)},
                         {{.a = Count(gradient), .b = Count(weight)},
                          {.a = Count(gradient), .b = Count(input), .stride_b = waste}},
                         Count(input) + Count(weight) + Count(gradient));
}

std::optional<OpWork> MatrixProduct(std::string_view op, const std::vector<Dims>& inputs) {
  if (inputs.size() < 2) return std::nullopt;
  if (IsOneOf(op, {"mm", "bmm", "matmul", "mv", "_scaled_mm", "_int_mm"})) {
    return Matmul(inputs[0], inputs[1]);
  }
  if (op == "linear") return Linear(inputs[0], inputs[1]);
  if (IsOneOf(op, {"addmm", "addmm_", "baddbmm", "baddbmm_", "addmv", "_addmm_activation"}) &&
      inputs.size() >= 3) {
    return Matmul(inputs[1], inputs[2]);
  }
  return std::nullopt;
}

// Layers of an LSTM, GRU or plain RNN, in one operator: (steps, batch, inputs), then the weights,
// which are the only matrices. Backward has the gradients of both factors.
std::optional<OpWork> Recurrent(std::string_view op, const std::vector<Dims>& inputs) {
  const bool backward = IsOneOf(op, {"_cudnn_rnn_backward", "miopen_rnn_backward"});
  if (!backward && !IsOneOf(op, {"_cudnn_rnn", "miopen_rnn"})) return std::nullopt;
  if (inputs[0].size() != 3) return std::nullopt;
  OpWork work;
  work.kind = OpWork::Kind::kRecurrent;
  const int64_t rows = inputs[0][0] * inputs[0][1];
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].size() != 2) continue;
    const int64_t out = inputs[i][0], in = inputs[i][1];
    if (backward) {
      work.products.push_back({.m = rows, .n = in, .k = out});
      work.products.push_back({.m = out, .n = in, .k = rows});
    } else {
      work.products.push_back({.m = rows, .n = out, .k = in});
    }
  }
  for (const GemmShape& product : work.products) {
    work.flops += product.Flops();
    work.elements += product.Bytes(1);
  }
  if (work.products.empty()) return std::nullopt;
  return work;
}

// Passes over the largest input, counting reads and writes.
struct Passes {
  std::string_view op;
  double passes;
};
// From the kernels that PyTorch launches for them: statistics read the input once more.
constexpr Passes kPasses[] = {
    {"native_batch_norm", 3},
    {"cudnn_batch_norm", 3},
    {"miopen_batch_norm", 3},
    {"native_batch_norm_backward", 5},
    {"cudnn_batch_norm_backward", 5},
    {"miopen_batch_norm_backward", 5},
    {"native_layer_norm", 2},
    {"native_layer_norm_backward", 4},
    {"native_group_norm", 3},
    {"native_group_norm_backward", 5},
    {"_softmax", 2},
    {"_softmax_backward_data", 3},
    {"_log_softmax", 2},
    {"_log_softmax_backward_data", 3},
    {"native_dropout", 2.25},
    {"native_dropout_backward", 2.25},
    {"max_pool2d_with_indices", 1.5},
    {"sum", 1},
    {"mean", 1},
    {"zero_", 1},
    {"fill_", 1},
    {"copy_", 2},
    {"_to_copy", 2},
    {"clone", 2},
};
// One output element from one element of each input, all read and written once.
constexpr std::string_view kPointwise[] = {"add",
                                           "sub",
                                           "mul",
                                           "div",
                                           "neg",
                                           "exp",
                                           "log",
                                           "pow",
                                           "sqrt",
                                           "rsqrt",
                                           "tanh",
                                           "sigmoid",
                                           "relu",
                                           "gelu",
                                           "silu",
                                           "clamp",
                                           "clamp_min",
                                           "threshold",
                                           "threshold_backward",
                                           "gelu_backward",
                                           "silu_backward",
                                           "tanh_backward",
                                           "sigmoid_backward",
                                           "addcmul",
                                           "addcdiv",
                                           "lerp",
                                           "where",
                                           "maximum",
                                           "minimum",
                                           "abs",
                                           "hardtanh",
                                           "hardtanh_backward",
                                           "leaky_relu",
                                           "leaky_relu_backward",
                                           "masked_fill",
                                           "bernoulli"};

// Softmax over the last dimension (the recorded shapes do not tell another), layer norm over as
// many of them as its weight has.
std::optional<RowShape> RowsOf(std::string_view op, const std::vector<Dims>& inputs) {
  const bool norm = op == "native_layer_norm";
  if (!norm && !IsOneOf(op, {"_softmax", "_log_softmax"})) return std::nullopt;
  if (inputs[0].empty() || inputs[0].back() <= 0) return std::nullopt;
  RowShape shape{.op = norm ? RowOp::kLayerNorm : RowOp::kSoftmax, .columns = inputs[0].back()};
  for (size_t i = 1; norm && i < inputs.size(); ++i) {
    if (!inputs[i].empty()) shape.columns = Product(inputs[i], 0, inputs[i].size());
  }
  const int64_t all = Product(inputs[0], 0, inputs[0].size());
  if (shape.columns <= 0 || all % shape.columns != 0) return std::nullopt;
  shape.rows = all / shape.columns;
  return shape;
}

// Rows of a table, each read once and written once, with its index of 8 bytes. A bag adds up its
// rows and writes one for each offset.
std::optional<OpWork> Lookup(std::string_view op, const std::vector<Dims>& inputs, DType dtype) {
  const bool bag = op == "_embedding_bag" || op == "_embedding_bag_forward_only";
  const bool select = op == "index_select";
  if (!bag && !select && op != "embedding") return std::nullopt;
  // (table, indices, ...), and a dimension between them in index_select.
  const size_t at = select ? 2 : 1;
  if (inputs.size() <= at + (bag ? 1 : 0) || inputs[0].size() != 2) return std::nullopt;
  const double rows = Count(inputs[at]), width = static_cast<double>(inputs[0][1]);
  const double written = bag ? Count(inputs[2]) : rows;
  OpWork work;
  work.flops = (rows + written) * width;
  if (work.flops <= 0) return std::nullopt;
  work.elements = work.flops + rows * 8 / DTypeBytes(dtype);
  return work;
}

// (parameters, gradients, two moments, ...) of a fused step: of the four, three are written, too.
std::optional<OpWork> FusedAdam(std::string_view op, const std::vector<Dims>& inputs) {
  if (op != "_fused_adam_" && op != "_fused_adamw_") return std::nullopt;
  OpWork work;
  work.flops = Sum(inputs);
  work.elements = 1.75 * work.flops;
  if (work.flops <= 0) return std::nullopt;
  return work;
}

std::optional<OpWork> MemoryBound(std::string_view op, const std::vector<Dims>& inputs) {
  OpWork work;
  work.flops = Largest(inputs);
  if (work.flops <= 0) return std::nullopt;
  for (const Passes& known : kPasses) {
    if (known.op != op) continue;
    work.elements = known.passes * Largest(inputs);
    work.rows = RowsOf(op, inputs);
    return work;
  }
  if (op.ends_with('_')) op.remove_suffix(1);
  if (std::find(std::begin(kPointwise), std::end(kPointwise), op) == std::end(kPointwise)) {
    return std::nullopt;
  }
  work.elements = Sum(inputs) + Largest(inputs);
  return work;
}

}  // namespace

OpWork WorkOfProduct(const GemmShape& shape) {
  OpWork work;
  work.kind = OpWork::Kind::kGemm;
  work.products = {shape};
  work.flops = shape.Flops();
  work.elements = shape.Bytes(1);
  return work;
}

OpWork WorkOfRows(const RowShape& shape) {
  OpWork work;
  work.flops = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  work.elements = 2 * work.flops;
  work.rows = shape;
  return work;
}

OpWork WorkOfElements(double elements) {
  OpWork work;
  work.elements = elements;
  return work;
}

std::optional<OpWork> WorkOfConvolution(const Dims& input, const Dims& weight, const Dims& output) {
  const auto sizes = SizesOf(input, weight, output);
  if (!sizes) return std::nullopt;
  return FromConvolution(
      {ForwardProduct(*sizes)},
      {{.a = Count(input), .b = Count(weight), .stride_a = StrideWaste(input, weight, output)}},
      Count(input) + Count(weight) + Count(output));
}

std::optional<std::vector<Dims>> ParseShapes(std::string_view shapes) {
  // A bracket that holds numbers, or nothing, is a tensor; any other is a list.
  std::vector<Dims> tensors;
  Dims current;
  int depth = 0;
  bool leaf = false;  // the innermost open bracket has held no bracket
  for (size_t i = 0; i < shapes.size();) {
    const char c = shapes[i];
    if (c == '[') {
      ++depth;
      leaf = true;
      current.clear();
      ++i;
    } else if (c == ']') {
      if (--depth < 0) return std::nullopt;
      if (leaf && depth > 0) tensors.push_back(current);
      if (tensors.size() > kMaxTensors) return std::nullopt;
      leaf = false;
      ++i;
    } else if (c == ',' || c == ' ') {
      ++i;
    } else {
      int64_t value = 0;
      const char* end = shapes.data() + shapes.size();
      const auto [next, error] = std::from_chars(shapes.data() + i, end, value);
      if (error != std::errc() || value < 0 || value > kMaxSize || depth == 0) return std::nullopt;
      current.push_back(value);
      i = static_cast<size_t>(next - shapes.data());
    }
  }
  if (depth != 0) return std::nullopt;
  return tensors;
}

DType ParseDType(std::string_view types) {
  struct Known {
    std::string_view word;
    DType dtype;
  };
  constexpr Known kKnown[] = {{"\"float\"", DType::kFp32},
                              {"\"c10::Half\"", DType::kFp16},
                              {"\"at::Half\"", DType::kFp16},
                              {"\"c10::BFloat16\"", DType::kBf16},
                              {"\"at::BFloat16\"", DType::kBf16},
                              {"\"double\"", DType::kFp64},
                              {"Float8", DType::kFp8},
                              {"\"signed char\"", DType::kInt8}};
  size_t first = std::string_view::npos;
  DType dtype = DType::kUnknown;
  for (const Known& known : kKnown) {
    const size_t at = types.find(known.word);
    if (at < first) {
      first = at;
      dtype = known.dtype;
    }
  }
  return dtype;
}

double GemmShape::Flops() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(k);
}

double GemmShape::Bytes(double element_bytes) const {
  const auto dm = static_cast<double>(m), dn = static_cast<double>(n), dk = static_cast<double>(k);
  return static_cast<double>(batch) * (dm * dk + dk * dn + dm * dn) * element_bytes;
}

bool OpWork::AlignedForTensorCores() const {
  return std::all_of(products.begin(), products.end(),
                     [](const GemmShape& p) { return p.n % 8 == 0 && p.k % 8 == 0; });
}

std::optional<OpWork> WorkOf(std::string_view op, std::string_view shapes, std::string_view types) {
  const auto inputs = ParseShapes(shapes);
  if (!inputs) return std::nullopt;
  return WorkOf(op, *inputs, ParseDType(types));
}

std::optional<OpWork> WorkOf(std::string_view op, const std::vector<Dims>& inputs, DType dtype) {
  if (op.starts_with("aten::")) op.remove_prefix(6);
  if (inputs.empty()) return std::nullopt;
  std::optional<OpWork> work = MatrixProduct(op, inputs);
  if (!work) work = Convolution(op, inputs);
  if (!work) work = Recurrent(op, inputs);
  if (!work) work = Lookup(op, inputs, dtype);
  if (!work) work = FusedAdam(op, inputs);
  if (!work) work = MemoryBound(op, inputs);
  if (work && work->kind != OpWork::Kind::kMemory && work->flops <= 0) return std::nullopt;
  if (work) work->dtype = dtype;
  return work;
}

}  // namespace daydream
