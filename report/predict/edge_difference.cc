#include "report/predict/edge_difference.h"

#include <algorithm>
#include <iterator>

namespace daydream {
namespace {

KeyedEdge::Key KeyOf(const Edge& e) {
  return {e.from.value, e.to.value, e.rule, e.from_anchor, e.to_anchor};
}

// Edits drop edges, change them where they stand, and add others at the end: most are found side by
// side, behind at most this many that were dropped together.
constexpr size_t kDroppedTogether = 64;

}  // namespace

EdgeDifference Differ(std::span<const Edge> before, std::span<const Edge> after) {
  std::vector<KeyedEdge> a, b;  // that were not found side by side
  const auto keyed = [](std::span<const Edge> edges, size_t i) {
    return KeyedEdge{KeyOf(edges[i]), edges[i].lag.ns, i};
  };
  const auto same = [&](size_t i, size_t j) {
    return i < before.size() && j < after.size() && before[i].lag == after[j].lag &&
           KeyOf(before[i]) == KeyOf(after[j]);
  };
  size_t i = 0, j = 0;
  while (i < before.size() && j < after.size()) {
    if (same(i, j)) {
      ++i, ++j;
      continue;
    }
    size_t dropped = same(i + 1, j + 1) ? kDroppedTogether : 1;
    while (dropped < kDroppedTogether && !same(i + dropped, j)) ++dropped;
    if (dropped < kDroppedTogether) {
      for (; dropped > 0; --dropped) a.push_back(keyed(before, i++));
    } else {
      a.push_back(keyed(before, i++));
      b.push_back(keyed(after, j++));
    }
  }
  for (; i < before.size(); ++i) a.push_back(keyed(before, i));
  for (; j < after.size(); ++j) b.push_back(keyed(after, j));
  std::stable_sort(a.begin(), a.end());
  std::stable_sort(b.begin(), b.end());
  EdgeDifference d;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(d.before));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(d.after));
  return d;
}

}  // namespace daydream
