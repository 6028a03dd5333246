// Which sizes in the recorded shapes of ops grow with the batch: those of activations, not those of
// parameters.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "costmodel/op_shape.h"
#include "graph/graph.h"
#include "transforms/analysis/op_shapes.h"

namespace daydream {

// Read once from the ops of all kernels. Parameters are what stands in the place of a weight or
// bias (linear layers, convolutions, norms, embeddings) and whatever the optimizer works on.
class BatchSizes {
 public:
  BatchSizes(const Graph& graph, OpShapes& shapes);

  // Examples in a step: the first size of what most convolutions, batch norms, embeddings, row
  // norms or linear layers read, in this order of trust. 0 = shapes do not tell.
  int64_t recorded() const { return batch_; }
  const std::string& told_by() const { return told_by_; }
  bool by_rows() const { return by_rows_; }      // told by nothing but rows
  bool by_images() const { return by_images_; }  // told by convolutions or batch norms
  // Overrules what the shapes tell.
  void SetRecorded(int64_t batch) {
    batch_ = batch;
    by_rows_ = false;
  }

  // The inputs of `op` with `factor` times the batch; nothing where it does not depend on it.
  std::optional<std::vector<Dims>> Scaled(std::string_view op, const std::vector<Dims>& inputs,
                                          Phase phase, double factor) const;
  bool IsParameter(const Dims& dims) const { return parameters_.contains(dims); }
  // A[m,k] x B[k,n] gives the gradient of a weight: the batch is in k.
  bool IsWeightGradient(const Dims& a, const Dims& b, Phase phase) const;

 private:
  enum Vote : uint8_t { kImages, kTokens, kRows, kVotes };
  void Read(std::string_view op, const std::vector<Dims>& inputs, Phase phase);
  void AddParameter(Dims dims);
  void CountVotes();
  // Index of the size that holds the batch, or -1.
  int BatchAxis(const Dims& dims) const;
  bool HoldsBatch(int64_t size) const { return batch_ > 0 && size > 0 && size % batch_ == 0; }
  bool ScaleProduct(std::string_view op, std::vector<Dims>& inputs, Phase phase,
                    double factor) const;
  bool ScaleMatrices(Dims& a, Dims& b, Phase phase, double factor) const;

  absl::flat_hash_set<Dims> parameters_;
  absl::flat_hash_set<int64_t> rows_;  // of what linear layers read
  std::array<std::map<int64_t, uint64_t>, kVotes> votes_;
  int64_t batch_ = 0;
  bool by_rows_ = false;  // told by nothing but rows
  bool by_images_ = false;
  std::string told_by_;
};

// A size times a factor, at least 1.
int64_t ScaledSize(int64_t size, double factor);

// Whether an op of this name ("conv2d", "convolution_backward") is a convolution.
bool IsConvolution(std::string_view op);

}  // namespace daydream
