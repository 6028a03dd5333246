// What is predicted of a recording once its stalls are out of it, as every command asks it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "graph/build.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
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

}  // namespace daydream
