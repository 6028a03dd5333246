// Phases and layers of tasks, from the ranges around them. For graph construction.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/builder.h"

namespace daydream {

class Mapper {
 public:
  explicit Mapper(Builder& b);  // O(scopes)
  // Sets phase and layer. `task`: row `t` of the graph.
  void Assign(TaskId t, Task& task) {
    if (task.scope.valid()) {
      task.phase = phase_[task.scope.index()];
      task.layer = layer_[task.scope.index()];
    } else if (IsHost(task.kind) && backward_lane_[task.lane.index()]) {
      task.phase = Phase::kBackward;
    }
    if (IsGpu(task.kind)) AssignByWork(t, task);
  }

 private:
  enum class NameClass : uint8_t {
    kUnknown,
    kPlain,
    kStep,
    kOptimizer,
    kData,
    kForward,
    kBackward,
    kComm,
    kModule,
  };
  static NameClass Classify(std::string_view name, EventKind kind);

  NameClass ClassOf(const Scope& s);
  LayerId LayerNamed(LayerId parent, std::string_view text);
  LayerId LayerByCount(const Scope& s);
  LayerId LayerOfFrame(LayerId around, std::string_view frame);
  void Map(ScopeId id, const Scope& s);
  void MapOp(const Scope& s, Phase phase, LayerId& layer);
  void AssignByWork(TaskId t, Task& task);

  Builder& b_;
  std::vector<Phase> phase_;    // by scope
  std::vector<LayerId> layer_;  // by scope
  std::vector<NameClass> class_;
  std::vector<bool> backward_lane_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, LayerId> layers_;
  absl::flat_hash_map<int64_t, LayerId> forward_layer_;  // by autograd sequence number
  absl::flat_hash_map<uint32_t, uint32_t> counts_;       // by NameId, within the step
  size_t step_ = 0;
};

}  // namespace daydream
