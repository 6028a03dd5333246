// Predictions whose errors are alike, by what is known of them before anything is measured.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"
#include "report/predict/residuals.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

struct ErrorKind {
  std::string with_shapes, without_shapes;  // of kernels whose work is known, and of the others
  double known = 1;                         // share of the former
  double measured = 0;  // share of kernel time that another GPU takes as it was measured

  // The kind that a row of docs/accuracy.md counts as.
  const std::string& main() const { return known >= 0.5 ? with_shapes : without_shapes; }
};

// The optimization's name. Of amp() and batch(), which go by shapes, also "amp, no shapes". Of
// gpu() one of
//   "gpu"                  NVIDIA's, with an own power supply; rates of the new one were measured
//   "gpu, by data sheet"   the same, without measured rates of the new one
//   "gpu, slot-powered"    one of the two is fed by its slot alone: it clocks down with heat
//   "gpu, other vendor"    one of the two is not NVIDIA's, to which the model was fitted
// and each with ", no shapes". `terms` are those of the application.
ErrorKind ErrorKindOf(const Application& application, const Graph& recorded,
                      std::span<const KernelTerms> terms);

// Of several kinds the one that is known worst: never checked, or else held the smallest share.
struct LeastChecked {
  std::string kind;  // empty: nothing that would need a model
  size_t rows = 1;   // that may be used
  HeldRows held;
  void Add(const std::string& other, std::span<const std::string> left_out);
};

}  // namespace daydream
