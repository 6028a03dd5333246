// From a trace to a prediction: graph building, replay of a real graph, applying a transform, and a
// whole what-if. The counter "of floor" is the time against the slowest that is acceptable
// (CONTRIBUTING.md): below 1 is good.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>

#include "graph/build.h"
#include "report/predict/what_if.h"
#include "simulator/simulate.h"
#include "simulator/step_batch.h"
#include "trace/importer.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace daydream {
namespace {

// As the program does (tools/main.cc): a graph is built in memory that was in use before.
void KeepFreedMemory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
}

// The largest real trace where the real ones are at hand, else the shipped one.
std::shared_ptr<const Trace> Input() {
  const std::filesystem::path root(DAYDREAM_SOURCE_DIR);
  const auto real =
      std::filesystem::path(DAYDREAM_DATA_DIR) / "traces/training/sharded-v100-rank1of2.json.gz";
  const auto shipped = root / "examples" / "resnet50-synthetic.ddtrace";
  static const auto trace = ImportFile((std::filesystem::exists(real) ? real : shipped).string());
  return trace.value();
}

const BuiltGraph& Built() {
  static const BuiltGraph built = BuildGraph(Input()).value();
  return built;
}

void Report(benchmark::State& state, size_t things, double floor_ns) {
  using benchmark::Counter;
  double n = static_cast<double>(things) * static_cast<double>(state.iterations());
  state.counters["each"] = Counter(n, Counter::kIsRate | Counter::kInvert);
  state.counters["of floor"] = Counter(n * 1e-9 * floor_ns, Counter::kIsRate | Counter::kInvert);
}

void BM_BuildGraph(benchmark::State& state) {
  KeepFreedMemory();
  auto trace = Input();
  for (auto _ : state) benchmark::DoNotOptimize(BuildGraph(trace));
  Report(state, trace->rows(), 300);
}
BENCHMARK(BM_BuildGraph)->Unit(benchmark::kMillisecond);

// The recording so many times over, lane by lane; times and ids go on from copy to copy.
std::shared_ptr<const Trace> Repeated(const Trace& one, uint32_t times) {
  auto many = std::make_shared<Trace>();
  many->names = one.names;
  many->lanes = one.lanes;
  many->kernels = one.kernels;
  many->copies = one.copies;
  many->ops = one.ops;
  many->collectives = one.collectives;
  many->syncs = one.syncs;
  many->devices = one.devices;
  many->ranks = one.ranks;
  many->provenance = one.provenance;
  Instant end;
  for (size_t row = 0; row < one.rows(); ++row) end = std::max(end, one.End(row));
  const Duration window = end - Instant{} + Duration::Ms(1);
  const uint32_t ids = *std::ranges::max_element(one.correlation) + 1;
  many->lane_begin = {0};
  for (size_t lane = 0; lane < one.lanes.size(); ++lane) {
    for (uint32_t copy = 0; copy < times; ++copy) {
      for (size_t row = one.lane_begin[lane]; row < one.lane_begin[lane + 1]; ++row) {
        const uint32_t id = one.correlation[row];
        many->start.push_back(one.start[row] + window * copy);
        many->duration.push_back(one.duration[row]);
        many->lane.push_back(one.lane[row]);
        many->name.push_back(one.name[row]);
        many->kind.push_back(one.kind[row]);
        many->correlation.push_back(id == 0 ? 0 : id + copy * ids);
        many->detail.push_back(one.detail[row]);
      }
    }
    many->lane_begin.push_back(static_cast<uint32_t>(many->rows()));
  }
  return many;
}

// Four million events: what an event costs where the graph fits no cache, in memory that was in use
// before.
void BM_BuildLargeGraph(benchmark::State& state) {
  KeepFreedMemory();
  const auto one = Input();
  const auto trace = Repeated(*one, static_cast<uint32_t>(4'000'000 / one->rows() + 1));
  if (!BuildGraph(trace).ok()) state.SkipWithError("no graph");  // touches its memory
  for (auto _ : state) {
    const auto built = BuildGraph(trace);
    if (!built.ok()) state.SkipWithError("no graph");
    benchmark::DoNotOptimize(built);
  }
  Report(state, trace->rows(), 300);
}
BENCHMARK(BM_BuildLargeGraph)->Unit(benchmark::kMillisecond);

void BM_ReplayOrderKept(benchmark::State& state) {
  const Graph& graph = Built().graph;
  const Plan plan = Plan::Make(graph).value();
  for (auto _ : state) benchmark::DoNotOptimize(plan.Run(graph));
  Report(state, graph.size(), 10);
}
BENCHMARK(BM_ReplayOrderKept)->Unit(benchmark::kMillisecond);

// The step alone, without what the tasks begin and end at.
void BM_StepFromColumns(benchmark::State& state) {
  StepBatch batch = StepBatch::Make(Built().graph).value();
  for (auto _ : state) benchmark::DoNotOptimize(batch.StepWith({}));
  Report(state, Built().graph.size(), 3);
}
BENCHMARK(BM_StepFromColumns)->Unit(benchmark::kMillisecond);

// Eight scenarios side by side, each as another: all that tells them apart is told before.
void BM_EightScenarios(benchmark::State& state) {
  StepBatch batch = StepBatch::Make(Built().graph).value();
  for (auto _ : state) benchmark::DoNotOptimize(batch.Run());
  Report(state, StepBatch::kWidth * Built().graph.size(), 0.57);
}
BENCHMARK(BM_EightScenarios)->Unit(benchmark::kMillisecond);

void BM_CopyGraph(benchmark::State& state) {
  for (auto _ : state) {
    Graph copy = Built().graph;
    benchmark::DoNotOptimize(copy);
  }
  Report(state, Built().graph.size(), 60);
}
BENCHMARK(BM_CopyGraph)->Unit(benchmark::kMillisecond);

void BM_ApplySpeedup(benchmark::State& state) {
  auto scenario = ParseScenario("speedup(select=kernel:.*,by=2x)").value();
  Graph graph = Built().graph;
  size_t touched = 0;
  for (auto _ : state) touched = Apply(scenario[0], graph).value().changes.scaled;
  // One replay plus 50 ns a task that was touched.
  double floor = 50 + 10.0 * static_cast<double>(graph.size()) /
                          static_cast<double>(std::max<size_t>(touched, 1));
  Report(state, touched, floor);
}
BENCHMARK(BM_ApplySpeedup)->Unit(benchmark::kMillisecond);

void BM_WhatIfAmpFuse(benchmark::State& state) {
  const ReplayCheck replay = CheckReplay(Built(), nullptr).value();
  const std::vector<std::vector<Application>> scenarios = {ParseScenario("amp,fuse").value()};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        PredictAll(Built(), replay, scenarios, {.alone = false, .intervals = false}));
  }
}
BENCHMARK(BM_WhatIfAmpFuse)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daydream
