// Thousands of ranks of one program: bars of docs/performance.md.
#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include "base/check.h"
#include "report/parallel.h"
#include "simulator/ranks/columns.h"
#include "transforms/parallel/jitter.h"

namespace daydream {
namespace {

// A thread that launches up to 500 kernels ahead, a stream that computes, and a collective every
// hundred kernels.
Graph Program(size_t tasks) {
  Graph g;
  g.AddStep({});
  const LaneId host = g.AddLane({.lane = {.kind = LaneKind::kThread, .name = g.AddName("main")}});
  const LaneId compute = g.AddLane({.lane = {.kind = LaneKind::kStream, .number = 7}});
  const LaneId nccl = g.AddLane({.lane = {.kind = LaneKind::kStream, .number = 9}});
  for (size_t i = 0; i < tasks / 2; ++i) {
    const TaskId call = g.Append({.recorded_start = Instant::AtNs(int64_t(i)),
                                  .duration = Duration::Ns(4000 + int64_t(i % 7) * 300),
                                  .gap = Duration::Us(2),
                                  .name = g.AddName("cudaLaunchKernel"),
                                  .lane = host,
                                  .kind = TaskKind::kCall});
    const bool meets = i % 100 == 99;
    const TaskId before = g.lane(compute).last;
    const TaskId kernel = g.Append({.recorded_start = Instant::AtNs(int64_t(i) + 500),
                                    .duration = Duration::Ns(3000 + int64_t(i % 60) * 100),
                                    .name = g.AddName(meets ? "ncclDevKernel_AllReduce" : "k"),
                                    .lane = meets ? nccl : compute,
                                    .kind = meets ? TaskKind::kCollective : TaskKind::kKernel});
    g.AddEdge({.from = call, .to = kernel, .lag = Duration::Us(2), .rule = Rule::kLaunch});
    if (meets) g.AddEdge({.from = before, .to = kernel, .rule = Rule::kEventWait});
  }
  return g;
}

void BM_RankColumns(benchmark::State& state) {
  const auto tasks = static_cast<size_t>(state.range(0)),
             ranks = static_cast<size_t>(state.range(1));
  const Graph graph = Program(tasks);
  const TaskId last = graph.lanes()[1].last;
  auto columns = RankColumns::Make(graph, {&last, 1});
  DD_CHECK(columns.ok());
  RankSpeeds speeds;
  for (size_t r = 0; r < ranks; ++r)
    speeds.host.push_back(JitterOf(1, static_cast<int32_t>(r), 0.015));
  speeds.gpu = speeds.host;
  const auto each = [](size_t count, const std::function<void(size_t)>& body) {
    ForEachParallel(count, 2, body);
  };
  for (auto _ : state) benchmark::DoNotOptimize(columns->Run(speeds, ranks, each));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["ns/vertex"] =
      benchmark::Counter(static_cast<double>(state.iterations() * tasks * ranks) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_RankColumns)
    ->Args({20'000, 1'024})
    ->Args({20'000, 10'000})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace daydream
