// What the commands that look for something to do take: all options of a step of 100,000 tasks with
// two threads, and the points of speed-up curves a second.
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "graph/repeat.h"
#include "report/questions/advise.h"
#include "report/questions/causal.h"
#include "tests/transforms/every_option.h"
#include "trace/importer.h"

namespace daydream {
namespace {

// The shipped ResNet-50, one step of it repeated until there are as many tasks.
BuiltGraph Example(size_t tasks) {
  auto trace = ImportFile(DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace");
  DD_CHECK(trace.ok());
  auto built = BuildGraph(*trace);
  DD_CHECK(built.ok());
  const size_t per_step = built->graph.size() / built->graph.steps().size();
  auto repeated = RepeatStep(built->graph, 2, static_cast<int>(tasks / per_step));
  DD_CHECK(repeated.ok());
  built->graph = *std::move(repeated);
  return *std::move(built);
}

void BM_Advise(benchmark::State& state) {
  const BuiltGraph built = Example(static_cast<size_t>(state.range(0)));
  const Tried tried = EverythingTried();
  auto replay = CheckReplay(built, nullptr);
  DD_CHECK(replay.ok());
  for (auto _ : state) {
    auto advised = Advise(built, *replay, tried.options, tried.limits, {.jobs = 2});
    DD_CHECK(advised.ok());
    benchmark::DoNotOptimize(advised->worth.size());
  }
  state.counters["tasks"] = static_cast<double>(built.graph.size());
  state.counters["options"] = static_cast<double>(tried.options.size() + tried.limits.size());
}
BENCHMARK(BM_Advise)->Arg(20000)->Arg(100000)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_SpeedupCurves(benchmark::State& state) {
  const BuiltGraph built = Example(static_cast<size_t>(state.range(0)));
  const std::vector<WorkGroup> groups = WorkGroups(built.graph);
  size_t points = 0;
  for (auto _ : state) {
    auto profile = ProfileCauses(built.graph, groups, {.most = 12});
    DD_CHECK(profile.ok());
    for (const SpeedupCurve& c : profile->curves) points += c.steps.size();
  }
  state.counters["points/s"] =
      benchmark::Counter(static_cast<double>(points), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_SpeedupCurves)->Arg(20000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daydream
