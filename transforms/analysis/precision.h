// What autocast does to each kernel: which run in 16 bit, which have to be cast for.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "costmodel/device.h"
#include "costmodel/kernel_class.h"
#include "graph/graph.h"
#include "graph/row_facts.h"
#include "transforms/analysis/kernel_table.h"

namespace daydream {

enum class Autocast : uint8_t {
  kMatrix,     // matrix products and convolutions: run in 16 bit
  kFollow,     // run in the format of their input
  kFull,       // leave fp32 behind: softmax, row norms, losses, embeddings, the optimizer, and ops
               // of other libraries, which autocast does not know
  kUntouched,  // integer work, collectives, and what is in 16 bit already
};

struct KernelPrecision {
  KernelTraits traits;
  Autocast rule = Autocast::kUntouched;
  bool half_already = false;  // reads and writes 16 bit in the recorded run
};

// Reads kernel names and the ops around them. Answers are kept by name and scope.
class PrecisionRules {
 public:
  explicit PrecisionRules(const Graph& graph);

  // REQUIRES: `t` is a kernel. Amortised O(1).
  KernelPrecision Of(TaskId t);
  // The op whose kernels `t` is one of: the innermost op with recorded shapes, else the innermost
  // op at all; None without ops.
  ScopeId OpOf(TaskId t) const;

 private:
  struct OpFacts {
    bool full = false;    // name is on autocast's list of fp32 ops
    bool custom = false;  // the innermost op is of another library than PyTorch
    bool typed = false;   // types of its inputs were recorded
    bool half = false;    // they hold a 16-bit float
    uint8_t flags() const;
    static OpFacts Of(uint8_t flags);
  };
  OpFacts FindFacts(ScopeId scope);
  OpFacts FactsOf(ScopeId scope);
  // Whether all launches of this kernel whose op has types work on 16 bit. O(tasks) once.
  bool IsHalfElsewhere(NameId kernel);
  // Whether every product and convolution of known format is in 16 bit or less, and there are some.
  // O(tasks) once.
  bool ProductsAreHalf();
  const Graph& graph_;
  KernelTable kernels_;
  std::shared_ptr<const RowFlags<ScopeId>> facts_;  // types and names are never edited
  // What names of ops and lists of types tell, by their names: most ops are equal to others.
  absl::flat_hash_map<NameId, OpFacts> names_, types_;
  struct Formats {
    bool half = false, other = false;
  };
  std::optional<absl::flat_hash_map<NameId, Formats>> formats_;  // of launches with types
  std::optional<bool> products_half_;
};

// The format in which a recorded matrix kernel multiplies now, on the GPU that it was recorded on.
DType RecordedFormat(const DeviceSpec& spec, const KernelPrecision& kernel);

// How much of the ratio of sustained rates a matrix kernel of unknown shape gains in a narrower
// format: 120 ResNet-50 convolutions on a V100 in fp32 and fp16 (dPRO, MLSys'22) gain 2.8 (median)
// where the rates have 5.5. And how much of its own deviation from the cost model one of known
// shape keeps: the same convolutions, with the exponent of the study that the form comes from.
inline constexpr double kFormatGain = 0.6, kOwnInFormat = 0.3;

// Device of the lane of `t`: what gpu() put in, else as recorded and known; spec is nullptr for
// unknown GPUs.
DeviceMatch DeviceOf(const Graph& graph, TaskId t);

// The same for many tasks: each device is matched once.
class KnownDevices {
 public:
  explicit KnownDevices(const Graph& graph) : graph_(graph) {}
  // nullptr: not known. O(1) but for the first task of a device.
  const DeviceSpec* Of(TaskId t) {
    const int32_t id = graph_.lane(graph_.task(t).lane).lane.device;
    auto [it, inserted] = specs_.try_emplace(id, nullptr);
    if (inserted) it->second = DeviceOf(graph_, t).spec;
    return it->second;
  }

 private:
  const Graph& graph_;
  absl::flat_hash_map<int32_t, const DeviceSpec*> specs_;
};

}  // namespace daydream
