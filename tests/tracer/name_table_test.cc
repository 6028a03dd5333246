#include "tracer/name_table.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace daydream::tracer {
namespace {

TEST(NameTable, IdsCountUpAndEqualTextsAreOne) {
  static NameTable table;
  EXPECT_EQ(table.Intern(""), 0u);
  EXPECT_EQ(table.Intern("conv1"), 1u);
  EXPECT_EQ(table.Intern("conv2"), 2u);
  EXPECT_EQ(table.Intern("conv1"), 1u);
  EXPECT_EQ(table.Intern(std::string_view("conv1\0x", 7)), 3u);
  EXPECT_EQ(table.Text(1), "conv1");
  EXPECT_EQ(table.Text(3), std::string_view("conv1\0x", 7));
  EXPECT_EQ(table.Text(0), "");
  EXPECT_EQ(table.Text(4), "");
  EXPECT_EQ(table.size(), 3u);
}

TEST(NameTable, LongTextsAreCut) {
  static NameTable table;
  const std::string text(NameTable::kMaxLength + 100, 'x');
  EXPECT_EQ(table.Text(table.Intern(text)).size(), NameTable::kMaxLength);
}

TEST(NameTable, AMillionNamesFitAndTheNextIsDropped) {
  static NameTable table;
  for (uint32_t i = 1; i <= NameTable::kMaxNames; ++i) {
    ASSERT_EQ(table.Intern(std::to_string(i)), i);
  }
  EXPECT_EQ(table.dropped(), 0u);
  EXPECT_EQ(table.Intern("one more"), 0u);
  EXPECT_EQ(table.dropped(), 1u);
  for (uint32_t i = 1; i <= NameTable::kMaxNames; i += 997) {
    ASSERT_EQ(table.Intern(std::to_string(i)), i);
    ASSERT_EQ(table.Text(i), std::to_string(i));
  }
}

TEST(NameTable, BytesAreBounded) {
  static NameTable table;
  std::string text(NameTable::kMaxLength, 'x');
  uint32_t taken = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    text.replace(0, 8, std::to_string(10'000'000 + i));
    taken += table.Intern(text) != 0;
  }
  EXPECT_EQ(taken, NameTable::kMaxBytes / NameTable::kMaxLength);
  EXPECT_EQ(table.dropped(), 2000 - taken);
}

TEST(NameTable, TextsOfNvtxAndMarksLeaveRoomForKernels) {
  static NameTable table;
  const size_t share = NameTable::kMaxNames / NameTable::kShare;
  for (const NameUse use : {NameUse::kNvtx, NameUse::kMark}) {
    const std::string prefix = use == NameUse::kNvtx ? "batch " : "range ";
    size_t taken = 0;
    for (size_t i = 0; i < share + 1000; ++i) {
      taken += table.Intern(prefix + std::to_string(i), use) != 0;
    }
    EXPECT_EQ(taken, share);
  }
  EXPECT_EQ(table.dropped(), 2000u);
  EXPECT_NE(table.Intern("kernel"), 0u);
  EXPECT_NE(table.Intern("batch 5", NameUse::kNvtx), 0u) << "a text that is there";
}

TEST(NameTable, ThreadsAgreeOnIds) {
  static NameTable table;
  constexpr int kThreads = 4, kNames = 20'000;
  std::vector<std::vector<uint32_t>> ids(kThreads, std::vector<uint32_t>(kNames));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ids, t] {
      for (int i = 0; i < kNames; ++i) {
        const int name = t % 2 == 0 ? i : kNames - 1 - i;
        ids[t][name] = table.Intern("layer" + std::to_string(name));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.size(), static_cast<uint32_t>(kNames));
  for (int i = 0; i < kNames; ++i) {
    for (int t = 1; t < kThreads; ++t) ASSERT_EQ(ids[t][i], ids[0][i]);
    ASSERT_EQ(table.Text(ids[0][i]), "layer" + std::to_string(i));
  }
}

}  // namespace
}  // namespace daydream::tracer
