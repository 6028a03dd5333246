// Memory snapshots of PyTorch beside a trace, and pickles that are no data.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/source_tree.h"
#include "tests/trace/recorded_files.h"
#include "trace/join/memory_snapshot.h"
#include "trace/join/pickle.h"

namespace daydream {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

std::string Snapshot() { return ReadText(ExampleFile("memory-small.pickle")); }

std::string WhyNot(const std::string& bytes) {
  const auto trace = Load(ExampleFile("memory-small.json"));
  MemoryFound found;
  const auto with = WithMemoryIn(trace, bytes, "memory.pickle", &found);
  EXPECT_FALSE(with.ok());
  if (with.ok()) return "";
  EXPECT_EQ(DiagnosticOf(with.status()).code, "E0233");
  return DiagnosticOf(with.status()).why;
}

// 8 MiB of parameters are there before the first step, 4 come and go in it, 2 beside them; the
// segment has 20. The snapshot holds what is left at the end, and the history tells the rest.
TEST(MemorySnapshot, TotalsAreToldBackwardsFromTheSegmentsAtTheEnd) {
  const auto trace = Load(ExampleFile("memory-small.json"));
  MemoryFound found;
  const auto with = WithMemoryOf(trace, ExampleFile("memory-small.pickle"), &found);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(found.events, 17u);
  EXPECT_EQ(found.in_window, 16u);  // the parameters came before
  EXPECT_FALSE(found.inconsistent);
  const std::vector<Allocation>& all = (*with)->allocations;
  ASSERT_EQ(all.size(), 16u);
  const int64_t bytes[] = {4, 2, -4, -2}, after[] = {12, 14, 10, 8};
  const int64_t at_us[] = {20, 235, 300, 700};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].bytes, bytes[i % 4] * kMiB) << i;
    EXPECT_EQ(all[i].allocated, after[i % 4] * kMiB) << i;
    EXPECT_EQ(all[i].reserved, 20 * kMiB) << i;
    EXPECT_EQ(all[i].device, 0) << i;
    EXPECT_EQ(all[i].at.ns, (static_cast<int64_t>(i / 4) * 1000 + at_us[i % 4]) * 1000) << i;
  }
}

TEST(MemorySnapshot, OneOfAnotherTimeIsRefused) {
  std::string bytes = Snapshot();
  // Each time is a number of 8 bytes, 1.7e15 us; the sixth byte counts 18 minutes.
  size_t moved = 0;
  for (size_t at = bytes.find("\x8a\x07"); at != std::string::npos;
       at = bytes.find("\x8a\x07", at + 1)) {
    ++bytes[at + 2 + 5];
    ++moved;
  }
  ASSERT_GT(moved, 10u);
  EXPECT_THAT(WhyNot(bytes), HasSubstr("begins after the trace ends by"));
}

TEST(MemorySnapshot, APickleThatHoldsCodeIsRefused) {
  EXPECT_THAT(WhyNot("\x80\x04"
                     "cos\nsystem\n\x8c\x02idR."s),
              HasSubstr("it holds code"));
  EXPECT_THAT(WhyNot("\x80\x04\x8c\x02os\x8c\x06system\x93."s), HasSubstr("it holds code"));
  EXPECT_THAT(WhyNot("\x80\x04}}b."s), HasSubstr("it holds code"));
}

TEST(MemorySnapshot, OtherPicklesAndDamageAreNamed) {
  EXPECT_THAT(WhyNot("{}"), HasSubstr("no pickle"));
  EXPECT_THAT(WhyNot("\x80\x04}."s), HasSubstr("device_traces"));
  EXPECT_THAT(WhyNot("\x80\x04}"s), HasSubstr("ends early"));
  EXPECT_THAT(WhyNot("\x80\x04h\x05."s), HasSubstr("not there"));
  EXPECT_THAT(WhyNot("\x80\x04u."s), HasSubstr("empty stack"));
  EXPECT_THAT(WhyNot("\x80\x04\x80\x07."s), HasSubstr("newer protocol"));
}

TEST(MemorySnapshot, AnyCutOfOneIsRefusedWithoutACrash) {
  const std::string bytes = Snapshot();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(WhyNot(bytes.substr(0, size)), "") << size;
    if (::testing::Test::HasFailure()) break;
  }
}

// Python: {'a': [1, -2, 2**40, 1.5, None, True], 'b': (b'x', 'y')}, protocol 4.
TEST(Pickle, ValuesAreWhatPythonWrote) {
  const std::string bytes =
      "\x80\x04\x95\x34\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"s + "a\x94]\x94(K\x01" +
      "J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01"s + "G?\xf8\x00\x00\x00\x00\x00\x00"s +
      "N\x88"s + "e\x8c\x01"s + "b\x94" + "C\x01x\x94\x8c\x01y\x94\x86\x94u."s;
  Pickle pickle;
  ASSERT_EQ(pickle.Read(bytes), "");
  const PickleValue* a = pickle.Find(pickle.root(), "a");
  ASSERT_NE(a, nullptr);
  const auto items = pickle.Items(*a);
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(items[0].number, 1);
  EXPECT_EQ(items[1].number, -2);
  EXPECT_EQ(items[2].number, int64_t{1} << 40);
  EXPECT_EQ(items[3].real, 1.5);
  EXPECT_EQ(items[4].kind, PickleValue::Kind::kNone);
  EXPECT_EQ(items[5].kind, PickleValue::Kind::kBool);
  const PickleValue* b = pickle.Find(pickle.root(), "b");
  ASSERT_NE(b, nullptr);
  ASSERT_EQ(pickle.Items(*b).size(), 2u);
  EXPECT_EQ(Pickle::Text(pickle.Items(*b)[1]), "y");
}

// A list that holds itself: `l = []; l.append(l)`.
TEST(Pickle, ContainersMayHoldThemselves) {
  Pickle pickle;
  ASSERT_EQ(pickle.Read("\x80\x04]\x94h\x00"s + "a."), "");
  ASSERT_EQ(pickle.Items(pickle.root()).size(), 1u);
  EXPECT_EQ(pickle.Items(pickle.root())[0].size, pickle.root().size);
}

}  // namespace
}  // namespace daydream
