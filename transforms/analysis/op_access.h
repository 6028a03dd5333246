// What an op reads and writes, as far as the shapes of its inputs tell. Tensors have no names in a
// trace, but sizes: an op cannot read what another one wrote when none of its inputs has the size
// of the result. Views keep the number of elements, except for some, which are looked for.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "transforms/analysis/data_flow.h"
#include "transforms/analysis/kernel_table.h"
#include "transforms/analysis/op_shapes.h"

namespace daydream {

// Numbers of elements: the multiples of `unit` up to `most`.
struct SizeClass {
  double unit = 1, most = 0;
  bool Has(double elements) const;
};

struct OpAccess {
  ScopeId op;                     // the op whose shapes these are
  std::vector<double> reads;      // elements of each input
  std::vector<SizeClass> writes;  // results, and inputs changed in place
  bool in_place = false;
  bool part = false;         // one of several results that the op computes independently
  bool reads_views = false;  // of a tensor of which the program takes parts
  bool writes_views = false;
};

// Valid while the graph's tables live.
class OpAccesses {
 public:
  explicit OpAccesses(const Graph& graph);

  // Nothing when it is not known: no op with recorded shapes, or one that is not listed here.
  std::optional<OpAccess> Of(TaskId t);
  // The later work needs the earlier, or may: it reads or changes what the other wrote, or changes
  // what the other read, or one is part of the other's op. What the trace says of who reads from
  // whom adds to what sizes tell; it takes nothing away, as not all that is read is recorded.
  bool Needs(const OpAccess& later, const OpAccess& earlier);

 private:
  void FindViews();
  bool Inside(ScopeId inner, ScopeId outer) const;

  const Graph& graph_;
  OpShapes shapes_;
  KernelClasses classes_;
  DataFlow flow_;
  absl::flat_hash_set<double> viewed_;  // sizes of tensors of which parts are taken
};

}  // namespace daydream
