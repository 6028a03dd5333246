// Scenarios a second on one core, with everything that a scenario needs: drawing it, filling its
// columns, playing it and finding its step time.
#include <benchmark/benchmark.h>

#include <random>

#include "base/check.h"
#include "graph/build.h"
#include "report/predict/step_spread.h"
#include "simulator/simulate.h"
#include "simulator/step_batch.h"

namespace daydream {
namespace {

// Steps of a training loop in which every launch starts a kernel; every tenth kernel is on a second
// stream and waits for the first. `tasks` in all, in `steps` steps whose pieces vary.
Graph TrainingSteps(size_t tasks, size_t steps) {
  std::mt19937_64 random(7);
  Graph g;
  const LaneId host = g.AddLane({.lane = {.kind = LaneKind::kThread, .name = g.AddName("main")}});
  std::vector<LaneId> streams;
  for (int i = 0; i < 2; ++i) {
    streams.push_back(g.AddLane({.lane = {.kind = LaneKind::kStream, .number = 7 + i}}));
  }
  for (size_t s = 0; s < steps; ++s) {
    const uint16_t step = g.AddStep({});
    TaskId before;
    for (size_t i = 0; i < tasks / steps / 2; ++i) {
      auto time = [&](int64_t ns) {
        return Duration::Ns(ns + static_cast<int64_t>(random() % 500));
      };
      const bool second = i % 10 == 9;
      const TaskId call = g.Append({.duration = time(4000),
                                    .gap = time(2000),
                                    .name = g.AddName("cudaLaunchKernel"),
                                    .lane = host,
                                    .step = step,
                                    .kind = TaskKind::kCall});
      const TaskId kernel = g.Append({.duration = time(3000 + 100 * static_cast<int64_t>(i % 60)),
                                      .gap = time(300),
                                      .name = g.AddName("k"),
                                      .lane = streams[second ? 1 : 0],
                                      .step = step,
                                      .kind = TaskKind::kKernel});
      g.AddEdge({.from = call, .to = kernel, .lag = Duration::Us(2), .rule = Rule::kLaunch});
      if (second) g.AddEdge({.from = before, .to = kernel, .rule = Rule::kEventWait});
      before = kernel;
    }
  }
  return g;
}

void Report(benchmark::State& state, size_t scenarios, size_t tasks) {
  using benchmark::Counter;
  const auto all = static_cast<double>(scenarios) * static_cast<double>(state.iterations());
  state.counters["scenarios/s"] = Counter(all, Counter::kIsRate);
  state.counters["ns/task"] =
      Counter(all * static_cast<double>(tasks) * 1e-9, Counter::kIsRate | Counter::kInvert);
}

// Every piece drawn anew in every scenario.
void BM_ResampledSteps(benchmark::State& state) {
  const Graph g = TrainingSteps(static_cast<size_t>(state.range(0)), 5);
  const StepSpread spread(g);
  auto batch = StepBatch::Make(g);
  if (!batch.ok()) return state.SkipWithError("no batch");
  constexpr size_t kScenarios = 1024;
  for (auto _ : state) benchmark::DoNotOptimize(spread.Resample(g, *batch, kScenarios));
  Report(state, kScenarios, g.size());
}
BENCHMARK(BM_ResampledSteps)->Arg(20000)->Arg(100000)->Unit(benchmark::kMillisecond);

// Playing and finding the step times alone.
void BM_Run(benchmark::State& state) {
  const Graph g = TrainingSteps(static_cast<size_t>(state.range(0)), 5);
  auto batch = StepBatch::Make(g);
  DD_CHECK(batch.ok());
  for (auto _ : state) benchmark::DoNotOptimize(batch->Run());
  Report(state, StepBatch::kWidth, g.size());
}
BENCHMARK(BM_Run)->Arg(20000)->Arg(225000)->Arg(1000000)->Unit(benchmark::kMillisecond);

// A sweep: all kernels scaled by one factor a scenario.
void BM_ScaledKernels(benchmark::State& state) {
  const Graph g = TrainingSteps(static_cast<size_t>(state.range(0)), 5);
  auto batch = StepBatch::Make(g);
  DD_CHECK(batch.ok());
  double factor = 0;
  for (auto _ : state) {
    batch->Reset();
    for (size_t s = 0; s < StepBatch::kWidth; ++s) {
      factor = factor > 1 ? 0 : factor + 0.01;
      for (size_t i = 0; i < g.size(); ++i) {
        const Task& t = g.tasks()[i];
        if (t.kind == TaskKind::kKernel) batch->Set(s, TaskId(i), t.duration.Scaled(factor), t.gap);
      }
    }
    benchmark::DoNotOptimize(batch->Run());
  }
  Report(state, StepBatch::kWidth, g.size());
}
BENCHMARK(BM_ScaledKernels)->Arg(20000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daydream
