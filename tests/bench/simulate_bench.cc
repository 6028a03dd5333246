// How fast graphs play, in ns a task, against the goals of docs/benchmarks.md. Graphs have eight
// lanes and 1.5 edges a task beside lane order; `local` edges come from the last 2000 tasks, as in
// a trace, `random` ones from anywhere.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "base/check.h"
#include "simulator/schedule.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kWindow = 2000;

Graph MakeGraph(size_t tasks, bool local, LaneOrder order) {
  std::mt19937_64 random(42);
  Graph g;
  g.Reserve(tasks, tasks * 3 / 2 + 1);
  for (size_t l = 0; l < kLanes; ++l) g.AddLane({.order = order});
  for (size_t i = 0; i < tasks; ++i) {
    const uint64_t bits = random();
    g.Append({.duration = Duration::Ns(1000 + static_cast<int64_t>(bits % 10000)),
              .gap = Duration::Ns(static_cast<int64_t>(bits >> 20 & 1023)),
              .lane = LaneId((bits >> 40) % kLanes),
              .kind = TaskKind::kKernel});
    const size_t edges = i == 0 ? 0 : 1 + (bits >> 50) % 2;
    for (size_t k = 0; k < edges; ++k) {
      const size_t reach = local ? std::min(i, kWindow) : i;
      g.AddEdge({.from = TaskId(i - 1 - random() % reach),
                 .to = TaskId(i),
                 .lag = Duration::Ns(static_cast<int64_t>(bits >> 30 & 1023))});
    }
  }
  return g;
}

const Graph& GraphOf(size_t tasks, bool local) {
  static std::map<std::pair<size_t, bool>, Graph> graphs;
  auto it = graphs.find({tasks, local});
  if (it == graphs.end()) {
    graphs.clear();  // one large graph at a time
    it = graphs.emplace(std::pair(tasks, local), MakeGraph(tasks, local, LaneOrder::kFixed)).first;
  }
  return it->second;
}

// Nanoseconds a task (and scenario), and how much better than the floor and the target that is.
void Report(benchmark::State& state, double tasks, double floor_ns, double target_ns) {
  using benchmark::Counter;
  const double total = tasks * static_cast<double>(state.iterations());
  state.counters["ns/task"] = Counter(total * 1e-9, Counter::kIsRate | Counter::kInvert);
  state.counters["of_floor"] = Counter(total * floor_ns * 1e-9, Counter::kIsRate);
  state.counters["of_target"] = Counter(total * target_ns * 1e-9, Counter::kIsRate);
}

void Arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"tasks", "local"})->Unit(benchmark::kMillisecond);
  for (int64_t tasks : {int64_t{1000000}, int64_t{10000000}}) {
    for (int64_t local : {1, 0}) b->Args({tasks, local});
  }
}

struct Columns {
  explicit Columns(const Graph& g) {
    for (const Task& t : g.tasks()) {
      duration.push_back(t.duration);
      gap.push_back(t.gap);
    }
  }
  std::vector<Duration> duration, gap;
};

void BM_PlanRun(benchmark::State& state) {
  const Graph& g = GraphOf(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  const Plan plan = Plan::Make(g).value();
  const Columns columns(g);
  for (auto _ : state) benchmark::DoNotOptimize(plan.Run(columns.duration, columns.gap).makespan);
  Report(state, static_cast<double>(g.size()), 10, 5);
}
BENCHMARK(BM_PlanRun)->Apply(Arguments);

void BM_PlanRunOfGraph(benchmark::State& state) {
  const Graph& g = GraphOf(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  const Plan plan = Plan::Make(g).value();
  for (auto _ : state) benchmark::DoNotOptimize(plan.Run(g).makespan);
  Report(state, static_cast<double>(g.size()), 10, 5);
}
BENCHMARK(BM_PlanRunOfGraph)->Apply(Arguments);

void BM_PlanMake(benchmark::State& state) {
  const Graph& g = GraphOf(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) benchmark::DoNotOptimize(Plan::Make(g).ok());
  Report(state, static_cast<double>(g.size()), 300, 120);
}
BENCHMARK(BM_PlanMake)->Apply(Arguments);

void BM_SimulateWithBlockers(benchmark::State& state) {
  const Graph& g = GraphOf(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) benchmark::DoNotOptimize(Simulate(g, {.blockers = true})->makespan);
  Report(state, static_cast<double>(g.size()), 300, 120);
}
BENCHMARK(BM_SimulateWithBlockers)->Args({1000000, 1})->Unit(benchmark::kMillisecond);

void BM_Schedule(benchmark::State& state) {
  const Graph& g = GraphOf(static_cast<size_t>(state.range(0)), state.range(1) != 0);
  for (auto _ : state) benchmark::DoNotOptimize(Schedule(g)->makespan);
  Report(state, static_cast<double>(g.size()), 80, 45);
}
BENCHMARK(BM_Schedule)->Apply(Arguments);

// Many tasks ready at once: `tasks` in groups of `wide`, each group released by one task.
void BM_ScheduleWideFrontier(benchmark::State& state) {
  const auto wide = static_cast<size_t>(state.range(1));
  Graph g;
  const LaneId gate = g.AddLane({});
  for (size_t l = 0; l < kLanes; ++l) g.AddLane({.order = LaneOrder::kPriority});
  std::mt19937_64 random(1);
  TaskId before;
  while (g.size() < static_cast<size_t>(state.range(0))) {
    const TaskId open = g.Append({.duration = Duration::Us(5), .lane = gate});
    if (before.valid()) g.AddEdge({.from = before, .to = open});
    for (size_t i = 0; i < wide; ++i) {
      const uint64_t bits = random();
      before = g.Append({.duration = Duration::Ns(static_cast<int64_t>(bits % 10000)),
                         .lane = LaneId(1 + (bits >> 40) % kLanes),
                         .priority = static_cast<int32_t>(bits >> 50 & 15)});
      g.AddEdge({.from = open, .to = before});
    }
  }
  for (auto _ : state) benchmark::DoNotOptimize(Schedule(g)->makespan);
  Report(state, static_cast<double>(g.size()), 350, 350);
}
BENCHMARK(BM_ScheduleWideFrontier)
    ->Args({1000000, 10000})
    ->Args({1000000, 100000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daydream
