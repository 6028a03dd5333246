// The work of a framework operator, from its name and the recorded shapes of its inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "costmodel/device.h"

namespace daydream {

// Shapes of an operator's inputs; no dimensions for scalars and for what is no tensor.
using Dims = std::vector<int64_t>;
// Parses "[[32, 3, 224, 224], [64, 3, 7, 7], []]". Lists of tensors count as their tensors, one
// after the other. Nothing when the text is something else.
std::optional<std::vector<Dims>> ParseShapes(std::string_view shapes);
// Type of the first floating-point tensor in "[\"c10::Half\", \"\", \"Scalar\"]".
DType ParseDType(std::string_view types);

// C[m,n] = A[m,k] x B[k,n], `batch` times.
struct GemmShape {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  double Flops() const;
  // Bytes of A, B and C, each touched once.
  double Bytes(double element_bytes) const;
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

// What the operands of a product really occupy, where that is not a full matrix: a convolution's
// patches overlap in memory, and a strided one skips part of it.
struct Operands {
  double a = 0, b = 0;                // elements that are read
  double stride_a = 1, stride_b = 1;  // elements fetched for each that is used, from a cache
  friend bool operator==(const Operands&, const Operands&) = default;
};

// Rows that a softmax or a layer norm works on, forward.
enum class RowOp : uint8_t { kSoftmax, kLayerNorm };
struct RowShape {
  RowOp op = RowOp::kSoftmax;
  int64_t rows = 0, columns = 0;
  double element_bytes = 4;
  friend bool operator==(const RowShape&, const RowShape&) = default;
};

struct OpWork {
  enum class Kind : uint8_t { kGemm, kConv, kMemory, kRecurrent };
  Kind kind = Kind::kMemory;
  // kGemm: the product. kConv: the products that the convolution equals, one for each direction
  // (forward, or gradients of input and weight), with the patches of the input as a matrix.
  // kRecurrent: of each matrix of weights with all steps at once; what steps wait for is not in it.
  std::vector<GemmShape> products;
  std::vector<Operands> operands;  // of each product; empty: full matrices
  double flops = 0;
  double elements = 0;  // read and written; a patch of the input counts once
  DType dtype = DType::kUnknown;
  std::optional<RowShape> rows;  // kMemory: softmax and layer norm, forward
  // False when a size had to be guessed: a forward convolution's stride is not in the shapes, so
  // its output is taken to be as large as its input.
  bool exact = true;

  double Bytes() const { return elements * DTypeBytes(dtype); }
  double Bytes(DType as) const { return elements * DTypeBytes(as); }
  // Tensor cores need sizes that are multiples of 8 (cuBLAS and cuDNN documentation; on newer
  // versions other sizes run padded). m is the free size and does not count.
  bool AlignedForTensorCores() const;
  friend bool operator==(const OpWork&, const OpWork&) = default;
};

// Work of operations that no recorded operator names: products, rows, and bytes that are moved.
OpWork WorkOfProduct(const GemmShape& shape);
OpWork WorkOfRows(const RowShape& shape);
OpWork WorkOfElements(double elements);

// A forward convolution (N, C and space) whose output is known; nothing for shapes that do not fit.
std::optional<OpWork> WorkOfConvolution(const Dims& input, const Dims& weight, const Dims& output);

// Work of `op` ("aten::addmm", with or without "aten::"), or nothing for operators that do no
// work on the GPU themselves, are not known here, or have no usable shapes.
std::optional<OpWork> WorkOf(std::string_view op, std::string_view shapes, std::string_view types);
std::optional<OpWork> WorkOf(std::string_view op, const std::vector<Dims>& inputs, DType dtype);

}  // namespace daydream
