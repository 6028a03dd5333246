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

#include "absl/container/flat_hash_map.h"
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

  // What the shapes of activations begin with: the first size of what most convolutions, batch
  // norms, embeddings, row norms or linear layers read, in this order of trust. It may as well
  // count tokens or places of a sequence. 0 = shapes do not tell.
  int64_t recorded() const { return batch_; }
  // Examples in a step: recorded() where ops that read examples say so, which are convolutions and
  // batch norms, else lists of sequences of words and losses of single examples. 0 = not sure.
  int64_t examples() const { return examples_; }
  const std::string& told_by() const { return told_by_; }
  // First sizes and by whom they are told, the likely ones first: "8192 (rows of ...)". Empty:
  // none.
  std::string Candidates() const;
  // Examples in a step, as somebody says who knows. Where the shapes begin with a part of as many,
  // a step runs them one after the other; any other number overrules what the shapes tell.
  void SetExamples(int64_t examples);

  // The inputs of `op` with `factor` times the batch; nothing where it does not depend on it.
  std::optional<std::vector<Dims>> Scaled(std::string_view op, const std::vector<Dims>& inputs,
                                          Phase phase, double factor) const;
  bool IsParameter(const Dims& dims) const { return parameters_.contains(dims); }
  // A[m,k] x B[k,n] gives the gradient of a weight: the batch is in k.
  bool IsWeightGradient(const Dims& a, const Dims& b, Phase phase) const;

 private:
  enum Vote : uint8_t { kImages, kTokens, kRows, kVotes };
  using Votes = std::map<int64_t, uint64_t>;  // by first size
  // What the name of an op tells that others are run by.
  struct OpAround {
    bool embeds = false, loss = false;
    bool counts = false;  // one of those whose own shapes tell examples
  };
  // An op that was run so many times.
  void Read(std::string_view op, const std::vector<Dims>& inputs, Phase phase, uint64_t times);
  // `seen`: by scope.
  void ReadAround(const Graph& graph, ScopeId scope, std::vector<bool>& seen,
                  absl::flat_hash_map<NameId, OpAround>& names);
  void AddParameter(Dims dims);
  void CountVotes();
  void FindExamples(Vote told);
  // Index of the size that holds the batch, or -1.
  int BatchAxis(const Dims& dims) const;
  bool HoldsBatch(int64_t size) const { return batch_ > 0 && size > 0 && size % batch_ == 0; }
  bool ScaleProduct(std::string_view op, std::vector<Dims>& inputs, Phase phase,
                    double factor) const;
  bool ScaleMatrices(Dims& a, Dims& b, Phase phase, double factor) const;

  absl::flat_hash_set<Dims> parameters_;
  absl::flat_hash_set<int64_t> rows_;  // of what linear layers read
  std::array<Votes, kVotes> votes_;
  Votes sequences_;              // of words, as embeddings read them
  Votes losses_, class_losses_;  // of classes: of examples, or of tokens
  bool embeds_ = false;
  int64_t batch_ = 0, examples_ = 0;
  bool by_rows_ = false;  // told by nothing but rows
  std::string told_by_;
};

// A size times a factor, at least 1.
int64_t ScaledSize(int64_t size, double factor);

// Whether an op of this name ("conv2d", "convolution_backward") is a convolution.
bool IsConvolution(std::string_view op);

}  // namespace daydream
