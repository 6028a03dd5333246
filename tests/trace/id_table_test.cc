#include "base/id_table.h"

#include <cstdint>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace daydream {
namespace {

TEST(IdTable, HoldsWhatWasSetLast) {
  IdTable<int> table(-1);
  EXPECT_EQ(table.Get(7), -1);
  table.Set(7, 3);
  EXPECT_EQ(table.Get(7), 3);
  EXPECT_EQ(table.Get(8), -1);
  table.Set(7, 4);
  EXPECT_EQ(table.Get(7), 4);
}

TEST(IdTable, HoldsTheFirstAndTheLastId) {
  IdTable<int> table(-1);
  EXPECT_EQ(table.Get(UINT32_MAX), -1);
  table.Set(0, 1);
  table.Set(UINT32_MAX, 2);
  EXPECT_EQ(table.Get(0), 1);
  EXPECT_EQ(table.Get(UINT32_MAX), 2);
}

// In runs, far apart, again and again: as a map has them.
TEST(IdTable, IsAMap) {
  std::mt19937 random(1);
  IdTable<uint32_t> table(0);
  std::map<uint32_t, uint32_t> known;
  for (uint32_t run = 0; run < 200; ++run) {
    const auto begin = static_cast<uint32_t>(random());
    for (uint32_t i = 0; i < 300; ++i) {
      const uint32_t id = begin + i * (1 + run % 3),
                     asked = begin + static_cast<uint32_t>(random() % 1000);
      table.Set(id, i + 1);
      known[id] = i + 1;
      const auto found = known.find(asked);
      ASSERT_EQ(table.Get(asked), found == known.end() ? 0 : found->second) << "seed 1, " << asked;
    }
  }
  for (const auto& [id, value] : known) ASSERT_EQ(table.Get(id), value);
}

}  // namespace
}  // namespace daydream
