// The peak of GPU memory in a step, before and after optimizations: from recorded allocations, else
// an estimate from shapes.
//
// The estimate is parameters, gradients and optimizer state, and what the forward pass keeps for
// the backward pass (transforms/analysis/saved_tensors.h) at the end of the forward pass. Not in
// it: buffers that live inside of one op, workspaces of libraries, fragmentation, the CUDA context.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transforms/core/editor.h"

namespace daydream {

struct MemoryProfile {
  enum class Source : uint8_t { kNone, kShapes, kAllocations };
  Source source = Source::kNone;
  double peak = 0;      // bytes that tensors occupy at most
  double reserved = 0;  // bytes that the framework held at most; 0 = not recorded
  // The part of the peak that comes and goes within a step.
  double in_step = 0;
  bool at_least = false;  // what was allocated before the recording is not in it
  uint64_t capacity = 0;  // of the device; 0 = not known

  // From shapes; also there when allocations were recorded.
  bool trains = false;
  double parameters = 0, gradients = 0, optimizer_state = 0, activations = 0;
  bool optimizer_known = false;
  // Forward ops on the GPU in all steps, those without shapes, and those that are not known.
  size_t ops = 0, ops_without_shapes = 0, ops_not_known = 0;

  bool known() const { return source != Source::kNone; }
  bool estimate() const { return source == Source::kShapes; }
};

// O(tasks + scopes + allocations).
MemoryProfile ProfileMemory(const Graph& graph);

// The peak after some changes.
struct PeakAfter {
  double peak = 0;        // of what is known
  bool estimate = false;  // any part of it
  bool unknown = false;   // some change has no size
  bool at_most = false;   // it is this or lower
  uint64_t capacity = 0;  // of the GPU that it is on then; 0 = not known

  bool fits() const { return capacity == 0 || unknown || peak <= static_cast<double>(capacity); }
};
PeakAfter AfterChanges(const MemoryProfile& before, std::span<const MemoryChange> changes);

// All bytes together; nothing when the size of one of them is unknown.
std::optional<int64_t> SumOfChanges(std::span<const MemoryChange> changes);

// Growth of parameters, gradients and the optimizer's state together; `growth` 0.5: half as many
// more.
MemoryChange ChangeOfParameters(const MemoryProfile& before, double growth);

// Scopes in which autograd hands a parameter its gradient, with the parameter's shape.
std::vector<ScopeId> GradientScopes(const Graph& graph);

struct Transform;

// Follows the peak through a scenario, one optimization after the other. What is kept for backward
// is told by the ops of the edited graph, in the same way as before any edit; recorded allocations
// scale it, so that the changes sum to the difference of the peaks.
class MemoryTrail {
 public:
  explicit MemoryTrail(const MemoryProfile& profile);
  // Gives the memory in `changes` its bytes, after `transform` edited `graph`. O(tasks).
  void Follow(const Transform& transform, const Graph& graph, Changes& changes);

 private:
  void Measure(const Graph& graph, MemoryChange& change);

  bool measured_ = false;  // allocations were recorded
  bool trains_ = false;
  bool shapes_ = false;  // of some forward op
  double in_step_ = 0;   // as it is now
  double kept_ = 0;      // by shapes, as it is now
  double scale_ = 1;     // bytes for each that shapes tell
};

}  // namespace daydream
