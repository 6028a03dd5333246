// Layers that a model repeats: "layers.0", "layers.1", ... or "DecoderLayer_0", "DecoderLayer_1",
// ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace daydream {

struct LayerFamily {
  std::string name;              // "model.layers", "Qwen2DecoderLayer"
  std::vector<int64_t> numbers;  // of its members, ascending
  Duration gpu;                  // GPU time inside of its members
};

class LayerFamilies {
 public:
  explicit LayerFamilies(const Graph& graph);

  // With at least two members, the one with most GPU time first.
  const std::vector<LayerFamily>& all() const { return families_; }
  // Index of the family with this name or whose name ends with it, or -1.
  int Find(std::string_view name) const;
  // Position in `numbers` of the member of family `f` that the layer is (part of), or -1.
  int MemberOf(size_t f, LayerId layer) const;

 private:
  struct Place {
    int family = -1;
    int64_t number = 0;
  };
  std::vector<LayerFamily> families_;
  std::vector<Place> own_;     // by layer: the family that it is a member of itself
  std::vector<Layer> layers_;  // of the graph as it was read: edits add more
};

}  // namespace daydream
