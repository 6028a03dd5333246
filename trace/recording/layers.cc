#include "trace/recording/layers.h"

#include <algorithm>
#include <tuple>

#include "trace/range_names.h"

namespace daydream {

LayersByTime::LayersByTime(const std::vector<MarkedSpan>& spans, const StringPool& names) {
  std::vector<const MarkedSpan*> sorted;
  for (const MarkedSpan& span : spans) {
    const std::string_view name = names.Get(span.name);
    if (span.kind == EventKind::kFrame || name == kBackwardRange || IsOptimizerRange(name)) {
      sorted.push_back(&span);
    }
  }
  // Outer spans first; the reader of marks closes inner ones first.
  std::reverse(sorted.begin(), sorted.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const MarkedSpan* a, const MarkedSpan* b) {
    return std::tuple(a->lane, a->begin, b->end) < std::tuple(b->lane, b->begin, a->end);
  });
  struct Open {
    Instant end;
    Layer layer;
  };
  std::vector<Open> open;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const MarkedSpan& span = *sorted[i];
    std::vector<Stretch>& stretches = lanes_[span.lane.value];
    const bool last = i + 1 == sorted.size() || sorted[i + 1]->lane != span.lane;
    Layer layer = open.empty() ? Layer() : open.back().layer;
    const bool pass = names.Get(span.name) == kBackwardRange;
    layer.backward = layer.backward || span.backward || pass;
    if (!pass) layer.path = span.name;
    // Children stay inside.
    const Instant end = open.empty() ? span.end : std::min(span.end, open.back().end);
    open.push_back({end, layer});
    stretches.push_back({span.begin, layer});
    const Instant next = last ? Instant{INT64_MAX} : sorted[i + 1]->begin;
    while (!open.empty() && open.back().end <= next) {
      const Instant closed = open.back().end;
      open.pop_back();
      stretches.push_back({closed, open.empty() ? Layer() : open.back().layer});
    }
  }
}

LayersByTime::Layer LayersByTime::At(LaneId lane, Instant t) const {
  const auto it = lanes_.find(lane.value);
  if (it == lanes_.end()) return {};
  const auto after = std::partition_point(it->second.begin(), it->second.end(),
                                          [&](const Stretch& s) { return s.begin <= t; });
  return after == it->second.begin() ? Layer() : (after - 1)->layer;
}

}  // namespace daydream
