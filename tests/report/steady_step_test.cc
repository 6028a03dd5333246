// Real recordings with one-time stalls: what is predicted from one is what is predicted from the
// same recording with the stalls cut out of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "report/questions/findings.h"
#include "report/stalls.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr Duration kLeft = Duration::Us(20);

// Stretches of more than `longest` in which nothing on the host begins or ends shrink to kLeft, for
// everything recorded. Order is kept.
std::shared_ptr<const Trace> WithoutStalls(const Trace& trace, Duration longest) {
  std::set<Instant> marks;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] != EventKind::kOp && trace.kind[row] != EventKind::kCall) continue;
    marks.insert(trace.start[row]);
    marks.insert(trace.End(row));
  }
  std::vector<std::pair<Instant, Instant>> stretches;
  for (auto it = marks.begin(); it != marks.end() && std::next(it) != marks.end(); ++it) {
    if (*std::next(it) - *it > longest) stretches.emplace_back(*it, *std::next(it));
  }
  auto shifted = [&](Instant t) {
    Duration less;
    for (const auto& [begin, end] : stretches) {
      if (t >= end) {
        less += end - begin - kLeft;
      } else if (t > begin) {
        less += std::max(t - begin - kLeft, Duration{});
      }
    }
    return t - less;
  };
  auto cut = std::make_shared<Trace>(trace);
  for (size_t row = 0; row < trace.rows(); ++row) {
    cut->start[row] = shifted(trace.start[row]);
    cut->duration[row] = shifted(trace.End(row)) - cut->start[row];
  }
  EXPECT_FALSE(stretches.empty());
  return cut;
}

std::vector<Prediction> Predictions(std::shared_ptr<const Trace> trace) {
  auto built = BuildGraph(std::move(trace));
  EXPECT_TRUE(built.ok()) << built.status();
  auto replay = CheckReplay(*built, nullptr);
  EXPECT_TRUE(replay.ok());
  EXPECT_TRUE(MakeSteady(*built, *replay).ok());
  std::vector<std::vector<Application>> scenarios;
  for (const char* spec : {"aot", "graphs", "compile", "free-host", "free-launch"}) {
    scenarios.push_back(*ParseScenario(spec));
  }
  auto result = PredictAll(*built, *replay, scenarios, {.intervals = false});
  EXPECT_TRUE(result.ok()) << result.status();
  return std::move(result->predictions);
}

const Prediction* Find(const std::vector<Prediction>& all, const std::string& name) {
  for (const Prediction& p : all) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

TEST(SteadyStep, SavingsAreThoseOfTheRecordingWithoutItsStalls) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces";
  for (const char* size : {"16", "64", "128", "512"}) {
    const auto path =
        RealTraceFolder() / fmt::format("batch/particle-transformer.bs{}.json.gz", size);
    auto trace = ImportFile(path.string());
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto with = Predictions(*trace),
               without = Predictions(WithoutStalls(**trace, Duration::Ms(100)));
    for (const Prediction& p : with) {
      const Prediction* other = Find(without, p.name);
      ASSERT_NE(other, nullptr);
      ASSERT_EQ(p.error.ok(), other->error.ok()) << size << " " << p.name;
      if (!p.error.ok()) continue;
      EXPECT_NEAR(p.speedup / other->speedup, 1, 0.1)
          << "batch " << size << ", " << p.name << ": " << p.step.ms() << " against "
          << other->step.ms() << " ms";
      EXPECT_EQ(p.confidence, Confidence::kLow);
    }
  }
}

// The shared traces that record a start, and odd ones. One of them has a step of sixteen tiny
// kernels that is bound by its host and may be that much faster: not by its stall, which is cut out
// of the recording itself to see it.
TEST(SteadyStep, NoSpeedUpComesFromInitialisation) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces";
  size_t asked = 0;
  for (const std::string& name : RealTraces()) {
    if (!name.starts_with("odd/") && name != "training/alexnet-a100-syncs.json.gz") continue;
    auto trace = ImportFile((RealTraceFolder() / name).string());
    if (!trace.ok() || !BuildGraph(*trace).ok()) continue;
    for (const Prediction& p : Predictions(*trace)) {
      if (!p.error.ok() || p.bound) continue;
      ++asked;
      if (p.speedup < 3) continue;
      EXPECT_EQ(p.confidence, Confidence::kLow);
      EXPECT_EQ(name, "odd/mi250-rocm.json.gz");
      const auto without = Predictions(WithoutStalls(**trace, Duration::Ms(5)));
      const Prediction* other = Find(without, p.name);
      ASSERT_NE(other, nullptr);
      EXPECT_NEAR(p.speedup / other->speedup, 1, 0.1) << name << ": " << p.name;
    }
  }
  EXPECT_GT(asked, 0u);
}

// A stretch of 33 ms outside of operators, in which no step becomes longer: the GPU was behind.
TEST(SteadyStep, WhatMakesNoStepLongerDoesNotHappenOnce) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces";
  auto trace = ImportFile((RealTraceFolder() / "loader/resnet50-v100.workers4.a.json.gz").string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_FALSE(FindStalls(built->graph).all.empty());
  auto replay = CheckReplay(*built, nullptr);
  ASSERT_TRUE(replay.ok());
  auto health = MakeSteady(*built, *replay);
  ASSERT_TRUE(health.ok());
  EXPECT_TRUE(health->stalls.all.empty());
  EXPECT_EQ(replay->steady, std::nullopt);
}

// The same recording, everything of it held up for 25 ms inside of one launch.
TEST(SteadyStep, WhatMakesNoStepLongerIsNotNamedBesideWhatDoes) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces";
  auto read = ImportFile((RealTraceFolder() / "loader/resnet50-v100.workers4.a.json.gz").string());
  ASSERT_TRUE(read.ok()) << read.status();
  const Trace& trace = **read;
  std::vector<Instant> launches;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] == EventKind::kCall && trace.Name(trace.name[row]) == "cudaLaunchKernel") {
      launches.push_back(trace.start[row]);
    }
  }
  std::ranges::sort(launches);
  const Instant at = launches[launches.size() / 2];
  const Duration held = Duration::Ms(25);
  auto later = std::make_shared<Trace>(trace);
  for (size_t row = 0; row < trace.rows(); ++row) {
    const bool host = !IsGpuWork(trace.kind[row]) && trace.kind[row] != EventKind::kSync;
    if (trace.start[row] > at) {
      later->start[row] = trace.start[row] + held;
    } else if (host && trace.End(row) > at) {
      later->duration[row] += held;
    }
  }
  auto built = BuildGraph(later);
  ASSERT_TRUE(built.ok()) << built.status();
  auto replay = CheckReplay(*built, nullptr);
  ASSERT_TRUE(replay.ok());
  auto health = MakeSteady(*built, *replay);
  ASSERT_TRUE(health.ok());
  ASSERT_FALSE(health->findings.empty());
  const Finding& once = health->findings.front();
  EXPECT_EQ(once.kind, FindingKind::kOneTime);
  EXPECT_NEAR(once.time.ms(), 25, 0.1) << once.text;
  EXPECT_THAT(once.text, testing::HasSubstr("without what happens once: cudaLaunchKernel in"));
  EXPECT_NEAR((replay->measured - health->steady).ms(), 25.0 / 5, 0.5) << once.text;
}

}  // namespace
}  // namespace daydream
