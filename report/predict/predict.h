// One scenario predicted. Internal to report/; PredictAll() is the way in.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "report/predict/graph_copies.h"
#include "report/predict/step_spread.h"
#include "report/predict/what_if.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// The unchanged graph, which every prediction is compared with.
struct Baseline {
  const Graph* graph = nullptr;
  std::unique_ptr<GraphCopies> copies;  // of `graph`
  Duration step;
  BoundBy path;
  std::vector<Limiter> limiters;
  std::optional<StepSpread> spread;  // when intervals are wanted
  MemoryProfile memory;
};
Baseline MakeBaseline(const Graph& graph, const Timeline& timeline, const WhatIfOptions& options);
// The unchanged step as the first row of a result.
Prediction BaselinePrediction(const Baseline& base);

Prediction Predict(const Baseline& base, const ReplayCheck& replay,
                   const std::vector<Application>& scenario, const WhatIfOptions& options);

}  // namespace daydream
