#include "graph/search_near.h"

#include <utility>

#include <gtest/gtest.h>

namespace daydream {
namespace {

TEST(SearchNear, FindsWhatASearchOfAllFinds) {
  for (size_t size = 0; size < 40; ++size) {
    for (size_t first = 0; first <= size; ++first) {
      for (size_t near = 0; near < size + 3; ++near) {
        const auto holds = [&](size_t i) {
          EXPECT_LT(i, size);
          return i < first;
        };
        ASSERT_EQ(PartitionPointNear(size, near, holds), first) << size << " from " << near;
      }
    }
  }
}

TEST(SearchNear, LooksAtFewRowsWhereTheAnswerIsNear) {
  constexpr size_t kSize = 1'000'000, kFirst = 700'000;
  for (const auto& [off, most] : {std::pair<size_t, size_t>{0, 2}, {5, 9}, {1000, 24}}) {
    for (size_t near : {kFirst - off, kFirst + off}) {
      size_t looks = 0;
      const auto holds = [&](size_t i) {
        ++looks;
        return i < kFirst;
      };
      EXPECT_EQ(PartitionPointNear(kSize, near, holds), kFirst);
      EXPECT_LE(looks, most) << "from " << near;
    }
  }
}

}  // namespace
}  // namespace daydream
