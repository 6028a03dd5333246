// What is predicted of a recording once its stalls are out of it, as every command asks it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/build.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "tests/graph/trace_sketch.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

struct SteadyAnswers {
  std::vector<Prediction> predictions;  // the baseline comes first
  std::vector<Finding> findings;
};

inline SteadyAnswers AskSteady(std::shared_ptr<const Trace> trace) {
  auto built = BuildGraph(std::move(trace));
  EXPECT_TRUE(built.ok()) << built.status();
  auto replay = CheckReplay(*built, nullptr);
  EXPECT_TRUE(replay.ok());
  auto health = MakeSteady(*built, *replay);
  EXPECT_TRUE(health.ok());
  std::vector<std::vector<Application>> scenarios;
  for (const char* spec : {"graphs", "aot", "fuse", "free-gpu"}) {
    scenarios.push_back(*ParseScenario(spec));
  }
  auto result = PredictAll(*built, *replay, scenarios, {.intervals = false});
  EXPECT_TRUE(result.ok()) << result.status();
  return {std::move(result->predictions), std::move(health->findings)};
}

inline void ExpectTheSame(const SteadyAnswers& held, const SteadyAnswers& usual) {
  ASSERT_EQ(held.predictions.size(), usual.predictions.size());
  for (const Prediction& p : usual.predictions) {
    const auto it = std::ranges::find(held.predictions, p.name, &Prediction::name);
    ASSERT_NE(it, held.predictions.end());
    ASSERT_EQ(it->error.ok(), p.error.ok()) << p.name << ": " << it->error;
    EXPECT_NEAR(it->step.ms(), p.step.ms(), 0.01 * usual.predictions[0].step.ms()) << p.name;
  }
}

// Eight marked steps of ten operators whose host takes 1 ms and whose kernel takes 3, so that the
// GPU has ever more in store: 100 ms in the sixth.
inline std::shared_ptr<const Trace> FasterHost() {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, done = 0;
  for (int step = 0; step < 8; ++step) {
    const double begin = now;
    for (int op = 0; op < 10; ++op, now += 1000) {
      s.Op(cpu, "aten::linear", now, 950);
      const double ready = std::max(now + 930, done + 2);
      s.Launch(cpu, gpu, "kernel", now + 900, 10, ready, 3000);
      done = ready + 3000;
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin);
  }
  return s.Build();
}

}  // namespace daydream
