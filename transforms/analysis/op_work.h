// The recorded work of the framework op that launched a kernel.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "costmodel/op_shape.h"
#include "graph/graph.h"

namespace daydream {

// Looks up op shapes around kernels. Answers are kept by scope: those that the recording gives for
// all copies of the graph.
class OpWorkTable {
 public:
  explicit OpWorkTable(const Graph& graph);
  ~OpWorkTable();
  OpWorkTable(const OpWorkTable&) = delete;
  OpWorkTable& operator=(const OpWorkTable&) = delete;

  struct Op {
    ScopeId scope;                 // the op that has the work
    const OpWork* work = nullptr;  // nullptr: no shapes recorded, or an op that is not known
  };
  // The innermost op around `t` whose work is known; ops that are equal may share it. Valid as long
  // as this is. Amortised O(1).
  Op Of(TaskId t);

  // A product of two activations (bmm, also inside of attention): it has no weight. A product with
  // batches is one; so is an op of that name without shapes. Amortised O(1).
  bool HasNoWeight(TaskId t);

  // Sums the durations of the live kernels of each op for which `counts` holds.
  void SumTimes(const std::function<bool(TaskId)>& counts);
  // Sum for this op; needs SumTimes().
  Duration TimeOf(ScopeId scope) const;

 private:
  class Known;
  const Graph& graph_;
  std::shared_ptr<const Known> recorded_;
  std::unique_ptr<Known> reshaped_;  // once ops have other shapes than recorded
  std::vector<Duration> times_;      // by scope, from SumTimes() on
};

}  // namespace daydream
