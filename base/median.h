// Values by their rank, of a copy: what is passed keeps its order. O(n), but for MeanMedian().
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace daydream {

// The value that `rank` smaller ones would stand before if all were sorted.
// REQUIRES: rank < values.size().
template <class T>
T Ranked(std::vector<T> values, size_t rank) {
  DD_CHECK(rank < values.size());
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The upper of the two middle ones where their number is even; T{} of none. Always one of them.
template <class T>
T Median(std::vector<T> values) {
  const size_t middle = values.size() / 2;
  return values.empty() ? T{} : Ranked(std::move(values), middle);
}

// The mean of the two middle ones where their number is even; T{} of none. O(n log n).
template <class T>
T MeanMedian(std::vector<T> values) {
  if (values.empty()) return T{};
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

}  // namespace daydream
