// What calls do, told once for each name: a trace has a million calls of thirty names.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/call_kind.h"
#include "graph/graph.h"

namespace daydream {

// Not for several threads at once. Keeps a reference to the graph.
class CallKinds {
 public:
  explicit CallKinds(const Graph& graph)
      : graph_(graph), kinds_(graph.tables().names->size(), kUnknown) {}

  // ClassifyCall() of the name.
  CallKind Of(NameId name) {
    if (name.index() >= kinds_.size()) return ClassifyCall(graph_.Name(name));  // a transform's
    uint8_t& kind = kinds_[name.index()];
    if (kind == kUnknown) kind = static_cast<uint8_t>(ClassifyCall(graph_.Name(name)));
    return static_cast<CallKind>(kind);
  }

 private:
  static constexpr uint8_t kUnknown = 0xff;

  const Graph& graph_;
  std::vector<uint8_t> kinds_;  // by recorded name
};

}  // namespace daydream
