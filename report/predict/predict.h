// One scenario predicted. Internal to report/; PredictAll() is the way in.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "report/predict/begun_rows.h"
#include "report/predict/graph_copies.h"
#include "report/predict/host_bound.h"
#include "report/predict/intervals.h"
#include "report/predict/known_shapes.h"
#include "report/predict/quick_host.h"
#include "report/predict/replays.h"
#include "report/predict/step_spread.h"
#include "report/predict/what_if.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// The unchanged graph, which every prediction is compared with.
struct Baseline {
  const Graph* graph = nullptr;
  std::unique_ptr<GraphCopies> copies;  // of `graph`
  std::unique_ptr<Replays> replays;     // of `graph` and of copies of which only times were set
  Duration step;
  std::vector<Duration> steps;  // of each step that counts
  Duration window;              // from the first start to the last end
  double samples = 0;           // that a step handles; 0: not known
  BoundBy path;
  std::vector<Limiter> limiters;
  std::optional<StepSpread> spread;  // when intervals are wanted
  MemoryProfile memory;
  bool workers_keep_up = false;         // WorkersKeepUp(), with intervals
  bool few_waits = false;               // FindFewWaits() of more than kMostFewWaits, likewise
  const TrueStep* true_step = nullptr;  // what was taken off the host's work
  // With intervals of what a profiler recorded (report/predict/quick_host.h).
  std::unique_ptr<QuickHost> quick_host;
  std::optional<Duration> over_quick_host;  // the step of that
  std::unique_ptr<LeastGpuTimes> least;     // with intervals
  std::unique_ptr<HostBound> host_bound;    // with `quick_host`, where no path is read
  std::unique_ptr<KnownShapes> shapes;      // where rows are asked for (WhatIfOptions::row)
  std::unique_ptr<BegunRows> begun;         // likewise
};
// The time that is asked about, and the same of every step that counts, which tells it as well.
Duration TimeOf(const Graph& graph, const Timeline& timeline, const WhatIfOptions& options);
Duration TimeOf(const Graph& graph, std::span<const Duration> times, const WhatIfOptions& options);
std::vector<Duration> TimesOf(const Graph& graph, const Timeline& timeline,
                              const WhatIfOptions& options);
// Done with `timeline` before it looks at what takes memory of its own.
Baseline MakeBaseline(const Graph& graph, Timeline timeline, const WhatIfOptions& options);
// The unchanged step as the first row of a result.
Prediction BaselinePrediction(const Baseline& base, const ReplayCheck& replay);

// A condition where loader workers that kept up with the recorded step may not with this one.
void AskMoreOfWorkers(const Baseline& base, Prediction& p);

// `told`: what all of the scenario made of the recorded graph, and a graph that this may work on;
// null: it is applied. A row without its interval only (WhatIfOptions::row).
Prediction Predict(const Baseline& base, const ReplayCheck& replay,
                   const std::vector<Application>& scenario, const WhatIfOptions& options,
                   const BegunRows::Begun* told = nullptr);

}  // namespace daydream
