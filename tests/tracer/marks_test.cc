#include "tracer/marks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tracer/graph_nodes.h"

namespace daydream::tracer {
namespace {

using ::testing::SizeIs;

using Taken = std::map<uint32_t, std::vector<MarkRecord>>;  // by thread

void Take(Taken& taken) {
  TakeMarks(
      [](void* user, uint32_t thread, const MarkRecord* marks, size_t count) {
        auto& of_thread = (*static_cast<Taken*>(user))[thread];
        of_thread.insert(of_thread.end(), marks, marks + count);
      },
      &taken);
}

size_t CountOf(const Taken& taken) {
  size_t count = 0;
  for (const auto& [thread, marks] : taken) count += marks.size();
  return count;
}

TEST(Marks, ComeBackInOrderWithTheirThread) {
  DropMarks();
  EXPECT_FALSE(AnyMarks());
  Mark(3, 0, 7);
  Mark(1, MarkName("conv1"), 0);
  EXPECT_TRUE(AnyMarks());
  Taken taken;
  Take(taken);
  EXPECT_FALSE(AnyMarks());
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken.begin()->first, static_cast<uint32_t>(gettid()));
  const std::vector<MarkRecord>& marks = taken.begin()->second;
  ASSERT_THAT(marks, SizeIs(2));
  EXPECT_EQ(marks[0].kind, 3u);
  EXPECT_EQ(marks[0].value, 7);
  EXPECT_EQ(MarkText(marks[1].name), "conv1");
  EXPECT_LE(marks[0].time_ns, marks[1].time_ns);
}

TEST(Marks, NoneOfFourThreadsIsLostWhileTheyAreTaken) {
  DropMarks();
  constexpr int kThreads = 4, kMarks = 200'000;
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kMarks; ++i) Mark(4, 0, i);
      --running;
    });
  }
  Taken taken;
  while (running > 0) Take(taken);
  for (std::thread& thread : threads) thread.join();
  Take(taken);
  EXPECT_EQ(DroppedMarks(), 0u);
  ASSERT_EQ(CountOf(taken), size_t{kThreads} * kMarks);
  for (const auto& [thread, marks] : taken) {
    for (size_t i = 0; i < marks.size(); ++i) {
      ASSERT_EQ(marks[i].value, static_cast<int64_t>(i % kMarks));
    }
  }
}

TEST(Marks, MemoryIsBoundedAndWhatDoesNotFitIsCounted) {
  DropMarks();
  const uint64_t before = DroppedMarks();
  const size_t many = kMaxWaitingMarks + 5000;
  for (size_t i = 0; i < many; ++i) Mark(4, 0, static_cast<int64_t>(i));
  Taken taken;
  Take(taken);
  EXPECT_LE(CountOf(taken), kMaxWaitingMarks);
  EXPECT_GE(CountOf(taken), kMaxWaitingMarks - 64 * 1024);  // other threads' blocks
  EXPECT_EQ(CountOf(taken) + DroppedMarks() - before, many);
  // There is room again.
  Mark(4, 0, 1);
  taken.clear();
  Take(taken);
  EXPECT_EQ(CountOf(taken), 1u);
}

TEST(Marks, ThreadsThatEndLeaveRoomForOthers) {
  DropMarks();
  const uint64_t before = DroppedMarks();
  Taken taken;
  constexpr int kThreads = 5000;  // more than there are blocks
  for (int i = 0; i < kThreads; ++i) {
    std::thread([i] { Mark(4, 0, i); }).join();
    if (i % 100 == 0) Take(taken);
  }
  Take(taken);
  EXPECT_EQ(DroppedMarks(), before);
  EXPECT_EQ(CountOf(taken), static_cast<size_t>(kThreads));
}

TEST(Marks, AForkedChildKeepsNamesButNotMarks) {
  DropMarks();
  const uint32_t name = MarkName("known to both");
  Mark(1, name, 0);
  NoteGraphNode({.node = 1});
  MarksBeforeFork();
  GraphNodesBeforeFork();
  const pid_t child = fork();
  if (child == 0) {
    MarksAfterForkInChild();
    GraphNodesAfterForkInChild();
    Taken taken;
    Take(taken);
    const bool empty = taken.empty() && TakeGraphNodes().empty();
    Mark(4, MarkName("known to both"), 5);
    Take(taken);
    const bool own = CountOf(taken) == 1 && taken.begin()->first == uint32_t(gettid()) &&
                     taken.begin()->second[0].name == name;
    _exit(empty && own ? 0 : 1);
  }
  MarksAfterForkInParent();
  GraphNodesAfterForkInParent();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Taken taken;
  Take(taken);
  EXPECT_EQ(CountOf(taken), 1u);
  EXPECT_THAT(TakeGraphNodes(), SizeIs(1));
}

}  // namespace
}  // namespace daydream::tracer
