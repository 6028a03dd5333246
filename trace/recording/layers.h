// Which layer a thread of a recording was working on at some time.
#pragma once

#include <map>
#include <vector>

#include "trace/recording/marks.h"

namespace daydream {

class LayersByTime {
 public:
  struct Layer {
    NameId path;  // of the layer, or the name of an optimizer's range; None: neither
    bool backward = false;
  };

  // O(n log n); spans of other kinds are ignored but for backward passes and optimizers.
  LayersByTime(const std::vector<MarkedSpan>& spans, const StringPool& names);
  // The innermost layer of the thread, O(log n).
  Layer At(LaneId lane, Instant t) const;

 private:
  // From `begin` to the begin of the next one of the same lane.
  struct Stretch {
    Instant begin;
    Layer layer;
  };
  std::map<uint32_t, std::vector<Stretch>> lanes_;
};

}  // namespace daydream
