// Where autocast casts, kernel by kernel along a stream.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"
#include "transforms/edits/amp_casts.h"

namespace daydream {

// For products of activations and weights only.
constexpr bool IsNarrow(DType dtype) { return dtype == DType::kFp8 || dtype == DType::kNvfp4; }

class CastPlaces {
 public:
  // Keeps references to all of them.
  CastPlaces(const Graph& graph, PrecisionRules& rules, OpWorkTable& works, OpShapes& shapes)
      : graph_(graph), rules_(rules), works_(works), shapes_(shapes) {}

  // A matrix kernel moves to another format.
  struct Matrix {
    TaskId at;
    DType wanted = DType::kBf16;  // the format asked for
    bool narrow = false;          // this one runs in it, and it is narrow
    bool wide_input = false;      // what it reads comes in fp32
    bool half_already = false;    // its recorded format has 16 bit
  };
  // Each matrix op casts its weight (and its bias) once a step, and its input where that comes in
  // fp32. Backward casts the gradient of the weight back, and the gradient that it reads where
  // that comes in fp32. fp8 and nvfp4 cast every input and every gradient.
  void AroundMatrix(const Matrix& m);

  // A kernel of an op that stays in fp32; `half`: what it reads comes in `wanted`, of 16 bit.
  // Returns whether 16 bit come out. Autocast casts what a row norm reads, but not what softmax and
  // sums read: they are told to write fp32. Backward runs without autocast, each op in the format
  // of its data; what forward cast is cast the other way.
  bool AroundFull(TaskId t, const KernelPrecision& p, bool half, DType wanted);

  // fp8: once a step and direction the largest values become the scales of the next step.
  void AddScaleUpdates();

  const std::vector<Cast>& all() const { return casts_; }

 private:
  bool AddsBias(ScopeId op) const;

  const Graph& graph_;
  PrecisionRules& rules_;
  OpWorkTable& works_;
  OpShapes& shapes_;
  std::vector<Cast> casts_;
  ScopeId last_matrix_, last_full_;                           // ops
  std::map<std::pair<uint16_t, Phase>, TaskId> last_narrow_;  // by step and phase
};

}  // namespace daydream
