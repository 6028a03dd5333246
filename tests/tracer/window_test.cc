// When the window opens and closes, and what DAYDREAM_RECORD says.
#include "tracer/window.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tracer/options.h"
#include "tracer/recorder.h"

namespace daydream::tracer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Options Parsed(std::string_view text) {
  std::vector<std::string> problems;
  Options options = ParseOptions(text, problems);
  EXPECT_THAT(problems, IsEmpty());
  return options;
}

TEST(Options, SayWhatTheyWereTold) {
  const Options o = Parsed(
      "capture=nvtx:my range;warmup=4;steps=2;labels=1;delay_ms=5;duration_ms=6;after=stop;"
      "graph=graph;nvtx=0;nccl=0;layers=auto;max_events=7;flush_ms=8;buffer_mb=2;"
      "pool_mb=9;quiet=1;of_the_future=x");
  EXPECT_EQ(o.capture, Capture::kNvtx);
  EXPECT_EQ(o.range, "my range");
  EXPECT_THAT(o.ranks, IsEmpty());
  EXPECT_THAT(Parsed("ranks=0,12").ranks, ElementsAre(0, 12));
  EXPECT_EQ(o.warmup, 4);
  EXPECT_EQ(o.steps, 2);
  EXPECT_EQ(o.labels, 1);
  EXPECT_EQ(o.delay_ms, 5);
  EXPECT_EQ(o.duration_ms, 6);
  EXPECT_TRUE(o.stop_after && o.whole_graphs && o.quiet);
  EXPECT_FALSE(o.nvtx || o.nccl);
  EXPECT_EQ(o.max_events, 7);
  EXPECT_EQ(o.flush_ms, 8);
  EXPECT_EQ(o.buffer_bytes, 2 << 20);
  EXPECT_EQ(o.pool_bytes, 9 << 20);
}

TEST(Options, BadValuesLeaveTheDefaultAndAreNamed) {
  std::vector<std::string> problems;
  const Options o = ParseOptions("warmup=-1;steps=many;nvtx=yes;capture=nvtx:;after", problems);
  EXPECT_EQ(o.warmup, 10);
  EXPECT_EQ(o.steps, 8);
  EXPECT_TRUE(o.nvtx);
  EXPECT_EQ(o.capture, Capture::kSteps);
  EXPECT_THAT(problems,
              ElementsAre(HasSubstr("warmup=-1"), HasSubstr("steps=many"), HasSubstr("nvtx=yes"),
                          HasSubstr("capture=nvtx:"), HasSubstr("after")));
}

// The steps of `numbers` during which the window is open.
std::vector<int64_t> Open(Window& window, const std::vector<int64_t>& numbers) {
  std::vector<int64_t> open;
  for (int64_t n : numbers) {
    window.OnStep(n);
    if (window.open()) open.push_back(n);
  }
  return open;
}

TEST(Window, OpensForLabelledAndTimedSteps) {
  Window window(Parsed("warmup=3;steps=2;labels=1"));
  EXPECT_TRUE(window.open()) << "a program without steps is recorded whole";
  EXPECT_THAT(Open(window, {0, 1, 2, 3, 4, 5, 6}), ElementsAre(2, 3, 4));
  EXPECT_EQ(window.steps(), 2);
  EXPECT_TRUE(window.over());
}

TEST(Window, StepsCountFromTheFirstThatIsSeen) {
  Window resumed(Parsed("warmup=2;steps=2;labels=0"));
  EXPECT_THAT(Open(resumed, {5000, 5001, 5002, 5003, 5004}), ElementsAre(5001, 5002));
  Window gaps(Parsed("warmup=2;steps=2;labels=0"));
  EXPECT_THAT(Open(gaps, {100, 200, 300, 400}), ElementsAre(200, 300));
  Window epochs(Parsed("warmup=3;steps=2;labels=0"));
  EXPECT_THAT(Open(epochs, {0, 1, 0, 1, 0, 1, 0, 1}), ElementsAre(1, 0));
  Window twice(Parsed("warmup=1;steps=1;labels=0"));
  EXPECT_THAT(Open(twice, {0, 0, 1, 1, 2, 2}), ElementsAre(1, 1));
  EXPECT_EQ(twice.steps(), 1);
}

TEST(Window, ALimitThatIsMetBeforeTheStepsClosesItUntilTheyCome) {
  Window window(Parsed("warmup=2;steps=2;labels=0"));
  EXPECT_EQ(window.OnLimit(), Switch::kOff);
  EXPECT_FALSE(window.over());
  EXPECT_FALSE(window.ever_open());
  EXPECT_THAT(Open(window, {0, 1, 2}), ElementsAre(2));
  EXPECT_TRUE(window.ever_open());
  EXPECT_EQ(window.OnLimit(), Switch::kOff);
  EXPECT_TRUE(window.over());
  EXPECT_EQ(window.OnStep(3), Switch::kStay);
}

TEST(Window, NeverOpensAgainAfterTheLastStep) {
  Window window(Parsed("warmup=1;steps=1;labels=0"));
  Open(window, {0, 1, 2});
  EXPECT_EQ(window.OnStep(1), Switch::kStay);
  EXPECT_FALSE(window.open());
}

TEST(Window, OpensAgainAfterStepsWithoutAnyRecording) {
  Window window(Parsed("warmup=2;steps=2;labels=1;windows=3;every=4"));
  EXPECT_THAT(Open(window, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), ElementsAre(1, 2, 3))
      << "GPU work is still recorded";
  EXPECT_TRUE(window.between());
  EXPECT_FALSE(window.over());
  window.OnDetached();
  std::vector<int64_t> more(20);
  for (size_t i = 0; i < more.size(); ++i) more[i] = static_cast<int64_t>(10 + i);
  EXPECT_THAT(Open(window, more), ElementsAre(16, 17)) << "six steps later, without labels";
  EXPECT_TRUE(window.between()) << "it waits for the work of the second";
  window.OnDetached();
  EXPECT_THAT(Open(window, {30, 31, 32, 33, 34, 35, 36, 37, 38, 39}), ElementsAre(36, 37));
  EXPECT_TRUE(window.over());
  EXPECT_EQ(window.steps(), 6);
}

TEST(Window, OpensAgainNoEarlierThanAsked) {
  Window window(Parsed("warmup=1;steps=1;labels=0;windows=2;every=12"));
  EXPECT_THAT(Open(window, {0, 1, 2}), ElementsAre(1));
  window.OnDetached();
  std::vector<int64_t> more(20);
  for (size_t i = 0; i < more.size(); ++i) more[i] = static_cast<int64_t>(3 + i);
  EXPECT_THAT(Open(window, more), ElementsAre(13));
}

TEST(Window, FollowsTheProfilerApiAsOftenAsItIsCalled) {
  Window window(Parsed("capture=cudaProfilerApi"));
  EXPECT_FALSE(window.open());
  EXPECT_EQ(window.OnStep(3), Switch::kStay);
  EXPECT_EQ(window.OnProfiler(true), Switch::kOn);
  EXPECT_EQ(window.OnProfiler(true), Switch::kStay);
  EXPECT_EQ(window.OnProfiler(false), Switch::kOff);
  EXPECT_EQ(window.OnProfiler(true), Switch::kOn);
  Window once(Parsed("capture=cudaProfilerApi;after=stop"));
  once.OnProfiler(true);
  once.OnProfiler(false);
  EXPECT_TRUE(once.over());
}

TEST(Window, WishesOfTheProfilerApiThatFindTheLockTakenAreFollowedInOrder) {
  Recorder& r = TheRecorder();
  r.window.emplace(Parsed("capture=cudaProfilerApi"));
  const auto wish_elsewhere = [&](std::vector<bool> wishes) {
    std::thread([&] {
      for (bool start : wishes) WishProfiler(r, start);
    }).join();
  };
  {
    std::lock_guard lock(r.window_mutex);
    wish_elsewhere({true, false, true});
    EXPECT_FALSE(r.window->open()) << "not before somebody who has the lock follows";
    FollowProfiler(r);
    EXPECT_TRUE(r.window->open());
    EXPECT_EQ(r.profiler_wishes, 1u);
    // More than fit: the last decides.
    std::vector<bool> many(1000, true);
    many.back() = false;
    wish_elsewhere(many);
    FollowProfiler(r);
    EXPECT_FALSE(r.window->open());
    wish_elsewhere({true});
  }
  // What waits comes first.
  wish_elsewhere({false});
  EXPECT_FALSE(r.window->open());
  EXPECT_TRUE(r.window->ever_open());
}

TEST(Window, FollowsARangeOnSeveralThreads) {
  Window window(Parsed("capture=nvtx:x"));
  EXPECT_EQ(window.OnRange(true), Switch::kOn);
  EXPECT_EQ(window.OnRange(true), Switch::kStay);
  EXPECT_EQ(window.OnRange(false), Switch::kStay);
  EXPECT_EQ(window.OnRange(false), Switch::kOff);
  EXPECT_EQ(window.OnRange(false), Switch::kStay);
}

TEST(Window, FollowsTime) {
  Window window(Parsed("capture=time;delay_ms=10;duration_ms=5"));
  EXPECT_EQ(window.OnTime(9), Switch::kStay);
  EXPECT_EQ(window.OnTime(10), Switch::kOn);
  EXPECT_EQ(window.OnTime(15), Switch::kOff);
  EXPECT_TRUE(window.over());
  Window at_once(Parsed("capture=time"));
  EXPECT_TRUE(at_once.open());
  EXPECT_EQ(at_once.OnTime(1'000'000), Switch::kStay);
}

}  // namespace
}  // namespace daydream::tracer
