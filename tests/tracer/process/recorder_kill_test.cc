// SIGKILL at random moments: every file opens, and the median loss is a flush period at most. (On a
// machine that has too much to do the recorder wakes late, so a single run may lose more.)
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracer/fake_cuda/fake_cuda.h"
#include "tests/tracer/process/child.h"
#include "trace/importer.h"

namespace daydream::tracer {
namespace {

constexpr int kRuns = kSanitized ? 20 : 200;
constexpr int64_t kFlushNs = 100'000'000;
// On a machine that has more to do than it can, the recorder wakes late like everyone else: a
// single run may lose more. Most do not.
constexpr int64_t kOverloadNs = 5'000'000'000;

// When launch i had returned, for each launch that did.
std::vector<int64_t> Launches(const std::string& path) {
  const std::string bytes = FileBytes(path);
  std::vector<int64_t> times(bytes.size() / sizeof(int64_t));
  memcpy(times.data(), bytes.data(), times.size() * sizeof(int64_t));
  times.resize(static_cast<size_t>(std::find(times.begin(), times.end(), 0) - times.begin()));
  return times;
}

struct Loss {
  size_t launches = 0;
  int64_t time_ns = 0;  // from the first lost launch to the kill
};

// One run that is killed `delay_us` after it began to launch.
Loss KillAfter(int64_t delay_us) {
  Session session;
  const std::string notes = session.scratch("notes");
  Child child(session, {"init", "endless=" + notes});
  EXPECT_TRUE(child.WaitForLine("ready"));
  usleep(static_cast<useconds_t>(delay_us));
  const int64_t killed = FakeNow();
  child.Kill(SIGKILL);
  const Left left = child.Wait();
  EXPECT_EQ(left.code, SIGKILL);
  const std::vector<int64_t> launches = Launches(notes);
  size_t kept = 0;
  if (!left.files.empty()) {
    EXPECT_EQ(left.files.size(), 1u);
    const auto trace = ImportFile(left.files[0]);
    EXPECT_TRUE(trace.ok()) << Message(trace.status());
    kept = CountRows(left.files[0])[pb::KIND_CALL];
  }
  EXPECT_LE(kept, launches.size() + 1) << "the last launch may not have been noted";
  if (kept >= launches.size()) return {};
  return {launches.size() - kept, killed - launches[kept]};
}

// Losses of `runs` runs in ms; the delays come from `seed`.
std::vector<int64_t> KillMany(uint32_t seed, int runs) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int64_t> delay_us(0, 250'000);
  std::vector<int64_t> lost_ms;
  for (int run = 0; run < runs; ++run) {
    const Loss loss = KillAfter(delay_us(random));
    EXPECT_LE(loss.time_ns, kFlushNs + kOverloadNs) << "seed " << seed << ", run " << run;
    lost_ms.push_back(loss.time_ns / 1'000'000);
  }
  return lost_ms;
}

TEST(RecorderKill, EveryFileOpensAndHalfOfAllKillsLoseAFlushPeriodAtMost) {
  const char* given = getenv("DAYDREAM_TEST_SEED");
  const auto seed = given == nullptr ? std::random_device()()
                                     : static_cast<uint32_t>(strtoul(given, nullptr, 10));
  // Two at a time: most of the time they sleep.
  auto other = std::async(std::launch::async, KillMany, seed + 1, kRuns / 2);
  std::vector<int64_t> lost_ms = KillMany(seed, kRuns / 2);
  for (int64_t ms : other.get()) lost_ms.push_back(ms);
  std::sort(lost_ms.begin(), lost_ms.end());
  EXPECT_LE(lost_ms[lost_ms.size() / 2], kFlushNs / 1'000'000);
  const auto late = lost_ms.end() - std::upper_bound(lost_ms.begin(), lost_ms.end(), 100);
  printf("seed %u, %zu runs, lost: median %ld ms, 95 %% %ld ms, most %ld ms; above 100 ms: %ld\n",
         seed, lost_ms.size(), static_cast<long>(lost_ms[lost_ms.size() / 2]),
         static_cast<long>(lost_ms[lost_ms.size() * 95 / 100]), static_cast<long>(lost_ms.back()),
         static_cast<long>(late));
}

}  // namespace
}  // namespace daydream::tracer
