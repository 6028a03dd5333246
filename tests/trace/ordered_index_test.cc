// Values by their keys, whatever order keys come and are asked in.
#include "trace/rows/ordered_index.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace daydream {
namespace {

TEST(OrderedIndex, FindsWhatAMapFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const bool in_order = round % 3 == 0;
    OrderedIndex<int> index;
    std::map<int64_t, int> map;
    int64_t key = 0;
    for (int i = 0; i < round % 60; ++i) {
      key = in_order ? key + 1 + static_cast<int64_t>(random() % 20)
                     : static_cast<int64_t>(random() % 90);
      index.Add(key, i), map[key] = i;
    }
    for (int i = 0; i < 200; ++i) {
      // Most follow the one before, as rows of two tables do.
      const int64_t wanted = random() % 4 == 0 ? static_cast<int64_t>(random() % 120) : i;
      const int* found = index.Find(wanted);
      const auto it = map.find(wanted);
      ASSERT_EQ(found != nullptr, it != map.end()) << "round " << round << ", key " << wanted;
      if (found != nullptr) {
        ASSERT_EQ(*found, it->second) << "round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace daydream
