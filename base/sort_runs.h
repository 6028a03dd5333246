// Sorting what is nearly in order: lanes behind each other, each of them in order, as recordings
// have them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace daydream {

// As std::stable_sort. O(n log(runs)), where a run is a stretch that is in order already.
template <class T, class Less>
void SortRuns(std::vector<T>& all, const Less& less) {
  std::vector<size_t> runs = {0};  // where they begin, and the end of the last
  for (size_t i = 1; i < all.size(); ++i) {
    if (less(all[i], all[i - 1])) runs.push_back(i);
  }
  if (runs.size() > all.size() / 8) return std::stable_sort(all.begin(), all.end(), less);
  runs.push_back(all.size());
  const auto at = [&](size_t run) { return all.begin() + static_cast<std::ptrdiff_t>(runs[run]); };
  while (runs.size() > 2) {
    size_t merged = 0;  // runs, each of two
    for (size_t r = 0; r + 1 < runs.size(); r += 2) {
      const size_t end = std::min(r + 2, runs.size() - 1);
      if (end == r + 2) std::inplace_merge(at(r), at(r + 1), at(end), less);
      runs[++merged] = runs[end];
    }
    runs.resize(merged + 1);
  }
}

}  // namespace daydream
