// What a prediction is unsure by, and the word for it.
#include "report/predict/intervals.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "report/predict/other_kernels.h"
#include "report/predict/residuals.h"
#include "report/predict/step_spread.h"
#include "report/predict/what_if.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "tests/report/exact_replay.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

WhatIf Ask(const BuiltGraph& built, const std::string& spec) {
  auto replay = CheckReplay(built, nullptr);
  EXPECT_TRUE(replay.ok());
  const std::vector<std::vector<Application>> scenarios = {*ParseScenario(spec)};
  auto result = PredictAll(built, *replay, scenarios, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

// A kind that was checked well.
LeastChecked Checked() {
  return {.kind = "prefetch",
          .rows = 20,
          .held = {.rows = 20, .inside = 18, .groups = 3, .share = 0.9}};
}

TEST(Intervals, WordsFollowTheWrittenRule) {
  ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Ms(80);
  Doubts doubts{.replay = &replay, .expected = 0.04, .checked = Checked()};
  const auto word = [&] {
    SetInterval(p, doubts);
    return p.confidence;
  };
  EXPECT_EQ(word(), Confidence::kHigh);
  EXPECT_NEAR(p.expected_error.value_or(0), 0.04, 1e-9);
  EXPECT_THAT(p.why, testing::HasSubstr("expected to be off by 4 % of the step"));
  EXPECT_THAT(p.why, testing::HasSubstr("18 of 20"));
  EXPECT_EQ(p.low, p.high);
  doubts.run = 0.05;
  EXPECT_EQ(word(), Confidence::kMedium) << "the next run may well be further off than the model";
  doubts.run = 0;
  doubts.checked.held.rows = 2;
  EXPECT_EQ(word(), Confidence::kMedium) << "few rows hold by chance";
  doubts.checked = Checked();
  doubts.checked.held.groups = 1;
  EXPECT_EQ(word(), Confidence::kMedium) << "rows of one group are wrong together";
  doubts.checked = Checked();
  doubts.unsure_gpu = "B200";
  EXPECT_EQ(word(), Confidence::kMedium);
  EXPECT_THAT(p.why, testing::HasSubstr("numbers of the B200 are not sure"));
  doubts.unsure_gpu.clear();
  p.unchecked = 0.2;
  EXPECT_EQ(word(), Confidence::kMedium);
  p.unchecked.reset();
  replay.steps = 1;
  EXPECT_EQ(word(), Confidence::kMedium);
  EXPECT_EQ(p.raise, "five recorded steps or more");
  replay.steps = 5;
  replay.simulated = Duration::Ms(105);
  EXPECT_EQ(word(), Confidence::kLow);
  replay = ExactReplay(5);
  replay.window = true;
  EXPECT_EQ(word(), Confidence::kLow) << "what was recorded need not be a step";
  EXPECT_THAT(p.raise, testing::HasSubstr("marks"));
}

// Kernels of another GPU at the ends of what their model is off by: 9 us of a step that takes 10 on
// its host.
TEST(Intervals, AHostThatTakesAsLongHidesOnlyFasterKernels) {
  const auto graph = ParseGraph(
      "lane cpu0 thread\nlane gpu0.7 stream\nstep \"0\" unmeasured\nstep \"1\"\n"
      "c0 cpu0 call 10us \"cudaLaunchKernel\" step=0\n"
      "k0 gpu0.7 kernel 9us \"sgemm\" step=0 after c0 launch\n"
      "c1 cpu0 call 10us \"cudaLaunchKernel\" step=1\n"
      "k1 gpu0.7 kernel 9us \"sgemm\" step=1 after c1 launch\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  Replays replays(*graph);
  const auto ends = StepsAtKernelEnds(*graph, 1 / kNinety, replays);
  ASSERT_TRUE(ends.has_value());
  EXPECT_EQ(ends->slow, Duration::Us(18));
  EXPECT_EQ(ends->quick, Duration::Us(10)) << "that of the host";

  const ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Us(10);
  Doubts doubts{.replay = &replay, .kernels = *ends, .checked = Checked()};
  SetInterval(p, doubts);
  EXPECT_EQ(p.low, p.step);
  EXPECT_NEAR(p.high->us(), 18, 0.5);
  // Over a host of no time the GPU bounds the step, whatever its kernels take.
  doubts.quick_host = {.step = Duration::Us(9),
                       .against_baseline = Duration::Us(9),
                       .kernels = KernelEnds{Duration::Ns(4500), Duration::Us(18)}};
  SetInterval(p, doubts);
  EXPECT_LT(p.low->us(), 8);
  EXPECT_NEAR(p.high->us(), 18, 1);
}

// The larger the error that rows of this kind had for changes of this size, the lower the word.
TEST(Intervals, WordsFollowWhatHeldRowsWereOffBy) {
  const ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Ms(80);
  Doubts doubts{.replay = &replay, .checked = Checked()};
  const auto at = [&](double expected) {
    doubts.expected = expected;
    SetInterval(p, doubts);
    return p.confidence;
  };
  EXPECT_EQ(at(0.05), Confidence::kHigh);
  EXPECT_EQ(at(0.06), Confidence::kMedium);
  EXPECT_EQ(at(0.15), Confidence::kMedium);
  EXPECT_EQ(at(0.16), Confidence::kLow);
  EXPECT_THAT(p.why, testing::HasSubstr("expected to be off by 16 % of the step"));
  EXPECT_THAT(p.raise, testing::HasSubstr("--learn"));
  doubts.checked.kind = "batch, no shapes";
  EXPECT_EQ(at(0.16), Confidence::kLow);
  EXPECT_THAT(p.raise, testing::HasSubstr("record_shapes=True"));
  doubts.checked.held.share = 0.7;
  EXPECT_EQ(at(0.01), Confidence::kLow) << "its ranges do not hold";
  doubts.checked = {.kind = "gist", .rows = 0};
  EXPECT_EQ(at(0.04), Confidence::kMedium) << "never checked, and it changes little";
  EXPECT_EQ(at(0.06), Confidence::kLow);
  EXPECT_THAT(p.why, testing::HasSubstr("never checked"));
  doubts.checked = Checked();
  doubts.checked.held.groups = 1;
  EXPECT_EQ(at(0.06), Confidence::kLow) << "one program says little of another";
  EXPECT_THAT(p.why, testing::HasSubstr("all of one program"));
  doubts.checked = Checked();
  doubts.expected = 0;
  doubts.params = {{Duration::Ms(30), Duration::Ms(140), 0.5}};
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kLow) << "an interval as long as the step decides nothing";
}

TEST(Intervals, ParametersAreDrawnFromTheirRanges) {
  const ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Ms(80);
  Doubts doubts{.replay = &replay, .checked = Checked()};
  doubts.params = {{Duration::Ms(70), Duration::Ms(100), 0.5}};
  SetInterval(p, doubts);
  EXPECT_NEAR(p.low->ms(), 71, 0.5);  // a twentieth of the range is left out at either end
  EXPECT_NEAR(p.high->ms(), 98, 0.5);
}

// A doubt is about the model and goes with runs that were measured; what has to hold in the program
// is no doubt about the model.
TEST(Intervals, ADoubtLowersTheWordAndAConditionOnlyKeepsItFromHigh) {
  const ReplayCheck replay = ExactReplay(5);
  Doubts doubts{.replay = &replay, .checked = Checked()};
  Prediction p;
  p.step = Duration::Ms(80);
  p.changes.conditions = {"right only if nothing is decided by their values: x"};
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kMedium);
  EXPECT_THAT(p.why, testing::HasSubstr(", if what it needs holds"));
  p.changes.conditions.clear();
  p.changes.warnings = {"whether it takes the whole model cannot be seen here"};
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kMedium) << "rows of three groups say what it is off by";
  EXPECT_THAT(p.why, testing::HasSubstr(p.changes.warnings[0]));
  doubts.checked.held.groups = 1;
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kLow);
  EXPECT_EQ(p.why, p.changes.warnings[0]);
  EXPECT_THAT(p.raise, testing::StartsWith("one measured run, kept with"));
  doubts.learned = true;
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kHigh);
  p.peak.emplace();
  p.peak->peak = 2e9;
  p.peak->capacity = 1'000'000'000;
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kLow) << "no run can have had more memory than there is";
}

// Without parameters nothing is drawn: steps that all come out alike are drawn, with equal ends.
// Who has kept one measured run is not told to keep one, as if there were none.
TEST(Intervals, LearnedRunsCallForOneMore) {
  const ReplayCheck replay = ExactReplay(5);
  Doubts doubts{.replay = &replay, .checked = {.kind = "prefetch", .rows = 1}};
  for (const double model : {0.1, 0.5}) {  // medium, and low
    Prediction p;
    p.step = Duration::Ms(100);
    doubts.model = doubts.expected = model;
    doubts.learned = true;
    SetInterval(p, doubts);
    EXPECT_THAT(p.raise, testing::StartsWith("one more measured run, kept with"));
    if (p.confidence == Confidence::kMedium) {
      EXPECT_THAT(p.why, testing::HasSubstr(", 1 run measured here"));
    }
    doubts.learned = false;
    SetInterval(p, doubts);
    EXPECT_THAT(p.raise, testing::StartsWith("one measured run, kept with"));
  }
}

TEST(Intervals, OneErrorAloneHasTheEndsThatDrawsHave) {
  const std::vector<Duration> alike = {Duration::Ms(7)};
  ReplayCheck replay = ExactReplay(5);
  replay.simulated = replay.measured.Scaled(1.02);
  for (const double model : {0.0, 0.01, 0.2, 3.0}) {
    SCOPED_TRACE(model);
    Prediction quick, drawn;
    quick.step = drawn.step = Duration::Ms(80);
    Doubts doubts{.replay = &replay, .model = model, .run = 0.01, .floor = Duration::Ms(60)};
    ASSERT_EQ(replay.spread(), 0);
    SetInterval(quick, doubts);
    doubts.resampled = alike;
    SetInterval(drawn, doubts);
    EXPECT_EQ(quick.low, drawn.low);
    EXPECT_EQ(quick.high, drawn.high);
    EXPECT_EQ(quick.least_speedup, drawn.least_speedup);
    EXPECT_EQ(quick.most_speedup, drawn.most_speedup);
    EXPECT_EQ(quick.why, drawn.why);
  }
}

TEST(Intervals, WhatIsFoundRulesOutHigh) {
  ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Ms(80);
  const Doubts doubts{.replay = &replay, .checked = {.rows = 1}};
  replay.caution = "clocks disagree";
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kMedium);
  EXPECT_THAT(p.why, testing::HasSubstr("clocks disagree"));
  replay.doubt = "work is lost";
  SetInterval(p, doubts);
  EXPECT_EQ(p.confidence, Confidence::kLow);
}

// A kernel that was lost leaves a delay in its step alone, which no faster GPU makes shorter.
TEST(Intervals, StepsThatWereAlikeAndAreNoMoreMakeItLow) {
  ReplayCheck replay = ExactReplay(3);
  const Doubts doubts{.replay = &replay, .checked = {.rows = 1}};
  const auto word = [&](const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
    Prediction p;
    p.step = Duration::Ms(50);
    replay.simulated_steps.clear();
    for (int64_t ms : before) replay.simulated_steps.push_back(Duration::Ms(ms));
    for (int64_t ms : after) p.steps.push_back(Duration::Ms(ms));
    SetInterval(p, doubts);
    return p.confidence;
  };
  EXPECT_EQ(word({100, 101, 99}, {31, 92, 31}), Confidence::kLow);
  EXPECT_EQ(word({100, 101, 99}, {50, 52, 49}), Confidence::kHigh);
  EXPECT_EQ(word({100, 180, 99}, {31, 92, 31}), Confidence::kHigh) << "they never were alike";
}

TEST(Intervals, NormalErrorsGiveNinetyPercent) {
  ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Ms(100);
  SetInterval(p, {.replay = &replay, .model = 0.03, .run = 0.04, .checked = {.rows = 1}});
  EXPECT_NEAR(p.low->ms(), 100 / (1 + 1.645 * 0.05), 0.6);
  EXPECT_NEAR(p.high->ms(), 100 + 1.645 * 5, 0.6);
}

TEST(Intervals, LargeErrorsNeverReachZero) {
  ReplayCheck replay = ExactReplay(5);
  Prediction p;
  p.step = Duration::Ms(10);
  Doubts doubts{.replay = &replay, .model = 2};
  SetInterval(p, doubts);
  EXPECT_NEAR(p.low->ms(), 10 / (1 + 1.645 * 2), 0.3);
  EXPECT_NEAR(p.high->ms(), 10 * (1 + 1.645 * 2), 2);
  doubts.floor = Duration::Ms(7);
  SetInterval(p, doubts);
  EXPECT_EQ(p.low->ms(), 7);
  doubts.floor = Duration::Ms(11);  // learned corrections may go below it
  SetInterval(p, doubts);
  EXPECT_EQ(*p.low, p.step);
}

TEST(Intervals, GpuWorkThatStaysAsRecordedIsAFloor) {
  const BuiltGraph built = Example("launch-bound");
  const auto floor = [&](const Graph& after) {
    return LeastGpuTime(after, LeastTimes(built.graph, after, false));
  };
  const Duration all = floor(built.graph);
  EXPECT_GT(all, Duration{});
  EXPECT_LE(all, StepTime(built.graph, *Simulate(built.graph)));
  Graph free = built.graph;
  ASSERT_TRUE(ApplyAll(*ParseScenario("free-gpu"), free).ok());
  EXPECT_EQ(floor(free), Duration{});
}

TEST(Intervals, NoStepOnAnotherGpuIsShorterThanItsDataSheetAllows) {
  const BuiltGraph built = Example("launch-bound");
  Graph there = built.graph;
  ASSERT_TRUE(ApplyAll(*ParseScenario("gpu(V100-SXM2-32GB)"), there).ok());
  const std::vector<Duration> recorded = LeastTimes(built.graph, there, false);
  const std::vector<Duration> known = LeastTimes(built.graph, there, true);
  const Duration floor = LeastGpuTime(there, known);
  EXPECT_GT(floor, LeastGpuTime(there, recorded));
  EXPECT_LE(floor, StepTime(there, *Simulate(there)));
  for (size_t i = 0; i < known.size(); ++i) {
    EXPECT_GE(known[i], recorded[i]);
    EXPECT_LE(known[i], there.task(TaskId(i)).duration);
  }
  const WhatIf result = Ask(built, "gpu(V100-SXM2-32GB)");
  const Prediction& p = result.predictions[result.main];
  EXPECT_GE(*p.low, floor.Scaled(1 / (1 + 1.645 * kRunToRun)) - Duration::Ns(1));
  EXPECT_LE(*p.low, p.step);
}

TEST(Intervals, LargerDoubtsNeverNarrowThem) {
  ReplayCheck replay = ExactReplay(5);
  const std::vector<Duration> resampled = {Duration::Ms(97), Duration::Ms(100), Duration::Ms(101)};
  for (bool spread : {false, true}) {
    for (bool ranged : {false, true}) {
      std::optional<Prediction> last;
      for (int i = 0; i <= 40; ++i) {
        Prediction p;
        p.step = Duration::Ms(80);
        Doubts doubts{.replay = &replay, .model = 0.02 * i, .checked = {.rows = 1}};
        if (ranged) doubts.params = {{Duration::Ms(75), Duration::Ms(90), 0.4}};
        if (spread) doubts.resampled = resampled;
        SetInterval(p, doubts);
        if (last) {
          EXPECT_LE(*p.low, *last->low) << i;
          EXPECT_GE(*p.high, *last->high) << i;
        }
        last = p;
      }
    }
  }
}

TEST(Intervals, StepsThatVaryWidenThem) {
  BuiltGraph built = Example("launch-bound");
  StepSpread spread(built.graph);
  EXPECT_GE(spread.steps(), 2u);
  StepBatch batch = StepBatch::Make(built.graph).value();
  auto same = spread.Resample(built.graph, batch, 20);
  auto again = spread.Resample(built.graph, batch, 20);
  ASSERT_EQ(same.size(), 20u);
  EXPECT_EQ(same, again);
  // Every second step takes twice as long.
  Graph uneven = built.graph;
  for (size_t i = 0; i < uneven.size(); ++i) {
    Task& t = uneven.mutable_task(TaskId(i));
    if (t.step % 2 == 1) t.duration = t.duration * 2, t.gap = std::max(t.gap, Duration{}) * 2;
  }
  StepBatch of_uneven = StepBatch::Make(uneven).value();
  auto wide = StepSpread(uneven).Resample(uneven, of_uneven, 200);
  Duration step = StepTime(uneven, *Simulate(uneven));
  auto [low, high] = std::minmax_element(wide.begin(), wide.end());
  EXPECT_GT(*high - *low, step.Scaled(0.3));
}

// What steps differ by among themselves is on both sides of a speed-up.
TEST(Intervals, UnevenStepsDoNotMakeASpeedUpDoubtful) {
  const std::vector<Duration> uneven = {Duration::Ms(10), Duration::Ms(100), Duration::Ms(110)};
  ReplayCheck replay;
  Prediction p;
  p.step = Duration::Ms(100);
  p.speedup = 2;
  SetInterval(p, {.replay = &replay, .resampled = uneven, .model = 0.01});
  EXPECT_LT(*p.low, Duration::Ms(20));
  EXPECT_NEAR(*p.least_speedup, 2 / (1 + 1.645 * 0.01), 0.01);
  EXPECT_NEAR(*p.most_speedup, 2 * (1 + 1.645 * 0.01), 0.01);
}

}  // namespace
}  // namespace daydream
