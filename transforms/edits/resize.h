// Re-times the kernels of a graph whose ops get inputs of other sizes.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/editor.h"
#include "transforms/edits/retime.h"

namespace daydream {

class Resizer {
 public:
  // What hangs on parameters that are not known.
  struct Model {
    double factor = 1;  // on every change of a time
    double fill = 0.5;  // that of WorkChange
  };
  // `floor`: what every kernel takes; 0 = as short kernels of this trace tell. `at_ends`: models at
  // the ends of Editor::AtEnds().
  Resizer(Editor& edit, Duration floor, Model model, std::vector<Model> at_ends);

  // Sizes of an op's inputs as they become; without them `growth` says how the kernel's work grows,
  // 1 where it does not change. `shape` may be unknown.
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
  // Share of the kernel time of all calls so far that did not change.
  double UnchangedShare() const;
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
  // Of a kernel that takes `now`.
  Retimed Then(TaskId t, Duration now, const Change& change, double fill);
  const KernelTraits& TraitsOf(TaskId t);
  Duration AllTime() const;

  Editor& edit_;
  OpShapes shapes_;
  KernelTable kernels_;
  KnownDevices devices_;
  Duration floor_;
  Model model_;
  std::vector<Model> at_ends_;
  // Kernels of one op and class change alike.
  absl::flat_hash_map<std::tuple<ScopeId, Phase, KernelClass>, Change> changes_;
  std::vector<std::pair<ScopeId, std::vector<Dims>>> resized_;
  std::array<Duration, 4> times_{};  // by shapes, by launch, by growth, unchanged
};

}  // namespace daydream
