#include "base/sort_runs.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace daydream {
namespace {

using Entry = std::pair<int, size_t>;  // what is sorted by, and where it was

bool Less(const Entry& a, const Entry& b) { return a.first < b.first; }

TEST(SortRuns, IsAStableSort) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    const size_t size = random() % 60 + (round % 100 == 0 ? 3000 : 0);
    const uint32_t breaks = random() % 40 + 1;  // one in so many begins a new run
    std::vector<Entry> all;
    int value = 0;
    for (size_t i = 0; i < size; ++i) {
      value = random() % breaks == 0 ? static_cast<int>(random() % 20)
                                     : value + static_cast<int>(random() % 2);
      all.emplace_back(value, i);
    }
    std::vector<Entry> expected = all;
    std::stable_sort(expected.begin(), expected.end(), Less);
    SortRuns(all, Less);
    ASSERT_EQ(all, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace daydream
