#include "trace/warm_up.h"

#include <algorithm>
#include <vector>

namespace daydream {
namespace {

constexpr size_t kLeft = 3;

// The two longest.
class Longest {
 public:
  void Add(int64_t length) {
    second_ = std::max(second_, std::min(first_, length));
    first_ = std::max(first_, length);
  }
  int64_t first() const { return first_; }
  int64_t second() const { return second_; }

 private:
  int64_t first_ = 0, second_ = 0;
};

bool Clearly(int64_t step, int64_t other) {
  return ClearlySlower(static_cast<double>(step), static_cast<double>(other));
}

}  // namespace

size_t SlowerAtFirst(std::span<const int64_t> lengths) {
  if (lengths.size() <= kLeft) return 0;
  const size_t most = std::min(lengths.size() / 2, lengths.size() - kLeft);
  std::vector<int64_t> least(lengths.begin(), lengths.end()), longest = least;  // up to each
  for (size_t i = 1; i < most; ++i) {
    least[i] = std::min(least[i], least[i - 1]);
    longest[i] = std::max(longest[i], longest[i - 1]);
  }
  Longest behind;
  for (const int64_t length : lengths.subspan(most)) behind.Add(length);
  for (size_t first = most; first > 0; --first) {
    const bool one_stalls = Clearly(behind.first(), longest[first - 1]);
    if (Clearly(least[first - 1], one_stalls ? behind.second() : behind.first())) return first;
    behind.Add(lengths[first - 1]);
  }
  return 0;
}

}  // namespace daydream
