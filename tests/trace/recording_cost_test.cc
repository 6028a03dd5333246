// What recording costs a call, a piece of GPU work and a mark of a layer, from steps with and
// without each.
#include "trace/recording/cost.h"

#include <random>

#include <gtest/gtest.h>

namespace daydream {
namespace {

constexpr uint64_t kCalls = 120, kWork = 100, kMarks = 400;
constexpr int64_t kCallNs = 3000, kWorkNs = 1000, kMarkNs = 800, kStepNs = 10'000'000;

// A program whose steps jitter by `jitter_ns`, and what the recorder adds to them.
class Program {
 public:
  explicit Program(double jitter_ns) : jitter_(0, jitter_ns) {}

  void Add(int steps, bool calls, bool work, bool layers, int64_t extra_ns = 0) {
    for (int i = 0; i < steps; ++i) {
      SeenStep step{.time = Duration{kStepNs + extra_ns + std::llround(jitter_(random_))},
                    .recorded = calls,
                    .labelled = layers};
      if (calls) step.calls = kCalls, step.time += Duration{kCallNs * int64_t{kCalls}};
      if (work) {
        step.work = kWork, step.gpu = Duration::Us(900);
        step.time += Duration{kWorkNs * int64_t{kWork}};
      }
      if (layers) step.layer_marks = kMarks, step.time += Duration{kMarkNs * int64_t{kMarks}};
      steps_.push_back(step);
    }
  }
  // As the recorder does it by itself.
  void Run() {
    Add(10, false, false, false);
    Add(3, true, true, true);
    Add(8, true, true, false);
    Add(20, false, true, false);
    Add(20, false, false, false);
  }
  RecordingCost Cost() const { return CostOfRecording(steps_); }

 private:
  std::mt19937_64 random_{15};
  std::normal_distribution<double> jitter_;
  std::vector<SeenStep> steps_;
};

TEST(RecordingCosts, OfACallWorkAndAMarkAreFoundWithinTheirError) {
  Program program(20'000);
  program.Run();
  const RecordingCost cost = program.Cost();
  ASSERT_TRUE(cost.call && cost.work && cost.layer_mark);
  EXPECT_NEAR(cost.call->ns, kCallNs, 0.1 * kCallNs);
  EXPECT_NEAR(cost.work->ns, kWorkNs, 0.1 * kWorkNs + cost.work->error_ns);
  EXPECT_NEAR(cost.layer_mark->ns, kMarkNs, 0.1 * kMarkNs);
  EXPECT_LT(cost.call->error_ns, 0.1 * kCallNs);
  EXPECT_LT(cost.layer_mark->error_ns, 0.2 * kMarkNs);
  EXPECT_GT(cost.layer_mark->error_ns, 0);
  EXPECT_EQ(cost.hidden, Duration::Us(900));
}

// The first of the labelled steps load what marks them.
TEST(RecordingCosts, AFewStepsThatDifferMoreThanAllOthersAreNoCostOfAMark) {
  Program program(5'000);
  program.Add(10, false, false, false);
  program.Add(1, true, true, true, 20'000'000);
  program.Add(1, true, true, true);
  program.Add(1, true, true, true, 6'000'000);
  program.Add(8, true, true, false);
  program.Add(20, false, true, false);
  program.Add(20, false, false, false);
  const RecordingCost cost = program.Cost();
  ASSERT_TRUE(cost.layer_mark.has_value());
  EXPECT_LT(std::abs(cost.layer_mark->ns - kMarkNs), cost.layer_mark->error_ns);
  EXPECT_LT(cost.call->error_ns, 0.1 * kCallNs) << "it is not in the others";
}

TEST(RecordingCosts, AProgramThatBecomesSlowerMakesThemLessSure) {
  Program steady(0), slower(0);
  for (Program* program : {&steady, &slower}) {
    program->Add(10, false, false, false);
    program->Add(8, true, true, false);
    program->Add(10, false, false, false, program == &slower ? 100'000 : 0);
  }
  EXPECT_EQ(steady.Cost().drift, Duration{0});
  EXPECT_EQ(steady.Cost().call->error_ns, 0);
  EXPECT_EQ(slower.Cost().drift, Duration::Us(100));
  EXPECT_NEAR(slower.Cost().call->error_ns, 50'000.0 / kCalls, 1);
}

TEST(RecordingCosts, WithoutStepsWithGpuWorkOnlyACallHasThatOfItsWork) {
  Program program(0);
  program.Add(10, false, false, false);
  program.Add(8, true, true, false);
  program.Add(10, false, false, false);
  const RecordingCost cost = program.Cost();
  EXPECT_FALSE(cost.work || cost.layer_mark);
  ASSERT_TRUE(cost.call);
  EXPECT_NEAR(cost.call->ns, kCallNs + kWorkNs * double{kWork} / kCalls, 1);
}

TEST(RecordingCosts, FewStepsTellNone) {
  Program program(0);
  program.Add(6, false, false, false);
  program.Add(4, true, true, false);
  program.Add(6, false, false, false);
  EXPECT_FALSE(program.Cost().call);
  EXPECT_EQ(CostOfRecording({}), RecordingCost());
}

TEST(RecordingCosts, StepsThatBecameShorterWhileRecordingTellNone) {
  Program program(0);
  program.Add(10, false, false, false);
  program.Add(8, true, true, false, -5'000'000);
  program.Add(10, false, false, false);
  EXPECT_FALSE(program.Cost().call);
}

}  // namespace
}  // namespace daydream
