#include "transforms/core/suggest.h"

#include <algorithm>
#include <vector>

namespace daydream {

size_t EditDistance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 64;
  if (a.size() > kLongest || b.size() > kLongest) return kLongest;
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string_view Closest(std::string_view word, std::span<const std::string_view> candidates) {
  size_t best = word.size() <= 3 ? 2 : 3;  // exclusive
  std::string_view closest;
  for (std::string_view candidate : candidates) {
    size_t distance = EditDistance(word, candidate);
    if (distance < best) best = distance, closest = candidate;
  }
  return closest;
}

}  // namespace daydream
