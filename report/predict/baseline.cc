#include "report/predict/predict.h"

#include "report/loader_workers.h"
#include "report/predict/kernel_time.h"
#include "report/predict/profiler_note.h"
#include "report/predict/quick_host.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "transforms/analysis/loader.h"

namespace daydream {

Duration TimeOf(const Graph& graph, const Timeline& timeline, const WhatIfOptions& options) {
  return options.kernel_time ? KernelTime(graph) : StepTime(graph, timeline);
}

Duration TimeOf(const Graph& graph, std::span<const Duration> times, const WhatIfOptions& options) {
  return options.kernel_time ? KernelTime(graph) : MeanOf(times);
}

std::vector<Duration> TimesOf(const Graph& graph, const Timeline& timeline,
                              const WhatIfOptions& options) {
  return options.kernel_time ? MeasuredKernelTimes(graph).measured_steps
                             : CountedPeriods(graph, timeline);
}

Baseline MakeBaseline(const Graph& graph, Timeline timeline, const WhatIfOptions& options) {
  std::optional<CountedPath> path;
  if (options.explain) path.emplace(graph, timeline);
  const std::vector<Duration> times = TimesOf(graph, timeline, options);
  Baseline base{.graph = &graph,
                .copies = std::make_unique<GraphCopies>(graph),
                .replays = std::make_unique<Replays>(graph),
                .step = TimeOf(graph, times, options),
                .steps = times,
                .window = WholeLength(timeline),
                .samples = 0,
                .path = path ? PathPerStep(*path) : PathPerStep(graph, timeline),
                .limiters = {},
                .spread = {},
                .memory = {}};
  if (path) base.limiters = PathByLimiter(graph, *path);
  path.reset();
  timeline = {};
  base.memory = ProfileMemory(graph);
  if (options.intervals) {
    base.spread.emplace(graph);
    base.least = std::make_unique<LeastGpuTimes>(graph);
    base.workers_keep_up = !options.kernel_time && WorkersKeepUp(graph);
    const auto few = FindFewWaits(graph, FindFetches(graph, LoaderScopes(graph)));
    base.few_waits = !options.kernel_time && few && few->count > 0 && few->share > kMostFewWaits;
  }
  base.true_step = options.true_step;
  if (options.row) {
    base.shapes = std::make_unique<KnownShapes>(*base.copies);
    base.begun = std::make_unique<BegunRows>(graph.size());
  }
  const bool doubted = options.intervals && !options.true_step && !options.profiled_alike;
  if (doubted && !options.kernel_time && HostIsStretched(graph)) {
    base.quick_host = std::make_unique<QuickHost>(graph, *base.replays);
    base.over_quick_host = base.quick_host->step();
    if (!options.path) base.host_bound = std::make_unique<HostBound>(graph);
  }
  return base;
}

void AskMoreOfWorkers(const Baseline& base, Prediction& p) {
  const bool shorter = p.step < base.step.Scaled(0.9);
  if (!base.workers_keep_up || p.bound || !shorter) return;
  p.changes.conditions.push_back(
      fmt::format("a batch is needed every {}; loader workers are only seen to keep up with {}",
                  FormatTime(p.step), FormatTime(base.step)));
}

Prediction BaselinePrediction(const Baseline& base, const ReplayCheck& replay) {
  Prediction unchanged;
  unchanged.name = "baseline";
  unchanged.error = replay.no_step;
  unchanged.step = unchanged.simulated = base.step;
  unchanged.steps = base.steps;
  unchanged.window = base.window;
  unchanged.over_quick_host = base.over_quick_host;
  unchanged.samples = base.samples;
  unchanged.path = base.path;
  if (base.memory.known()) unchanged.peak = AfterChanges(base.memory, {});
  unchanged.memory_change = 0;
  unchanged.why = "the replay of the recorded steps";
  if (base.true_step != nullptr) TellTrueStep(*base.true_step, unchanged);
  if (replay.unrecorded) TellUnrecorded(*replay.unrecorded, unchanged);
  if (base.graph != nullptr && base.true_step == nullptr) NoteProfiler(*base.graph, unchanged);
  const std::string doubt = replay.baseline_doubt();
  if (!doubt.empty()) unchanged.confidence = Confidence::kLow, unchanged.why = doubt;
  return unchanged;
}

}  // namespace daydream
