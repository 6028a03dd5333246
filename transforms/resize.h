// Re-times the kernels of a graph whose ops get inputs of other sizes.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transforms/editor.h"
#include "transforms/op_shapes.h"
#include "transforms/precision.h"
#include "transforms/retime.h"

namespace daydream {

class Resizer {
 public:
  // `floor`: what every kernel takes; 0 = as short kernels of this trace tell. `model`: factor on
  // every change of a time.
  Resizer(Editor& edit, Duration floor, double model);

  // Sizes of an op's inputs as they become; nothing where the op does not change. `shape` may be
  // unknown: then `growth` says how its work grows.
  struct Sizes {
    std::optional<std::vector<Dims>> inputs;
    double growth = 1;
  };
  using SizesOf = std::function<Sizes(TaskId, const OpShape&)>;

  // Sets the time of kernel `t`. O(1) amortised but for the model of each distinct op.
  void Resize(TaskId t, const SizesOf& sizes);
  // Later transforms of the scenario, and the peak of memory, see the new sizes. Call it once, when
  // nothing is asked of shapes() any more.
  void KeepShapes();
  // The work of `t` grows by this factor, whatever its op.
  void Grow(TaskId t, double growth);

  OpShapes& shapes() { return shapes_; }
  Duration floor() const { return floor_; }
  // "kernels by shapes 93 % of their time, by launch 5 %, unchanged 2 %".
  std::string Summary() const;

 private:
  struct Change {
    std::unique_ptr<OpWork> before, after;
    double growth = 1;
    bool none = false;
  };
  const Change& ChangeOf(TaskId t, const SizesOf& sizes);
  void Set(TaskId t, const Change& change);

  Editor& edit_;
  OpShapes shapes_;
  KnownDevices devices_;
  Duration floor_;
  double model_;
  absl::flat_hash_map<NameId, KernelTraits> traits_;
  absl::flat_hash_map<std::pair<ScopeId, Phase>, Change> changes_;
  std::vector<std::pair<ScopeId, std::vector<Dims>>> resized_;
  std::array<Duration, 4> times_{};  // by shapes, by launch, by growth, unchanged
};

}  // namespace daydream
