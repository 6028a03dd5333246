// Reading and writing .ddtrace: events and megabytes of file per second, bytes per event.
#include <benchmark/benchmark.h>

#include "trace/ddtrace/writer.h"
#include "trace/importer.h"

namespace daydream {
namespace {

// A training step again and again: operators with shapes around calls, a kernel for each call,
// times with jitter from a fixed generator.
std::shared_ptr<const Trace> MadeTrace(int64_t kernels) {
  TraceBuilder b;
  const LaneId thread = b.AddLane(LaneKind::kThread, 1, 2, -1);
  const LaneId stream = b.AddLane(LaneKind::kStream, 0, 7, 0);
  uint64_t state = 1;
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % below);
  };
  const NameId call = b.names().Intern("cudaLaunchKernel");
  int64_t cpu = 0, gpu = 0;
  for (int64_t i = 0; i < kernels; ++i) {
    const auto which = static_cast<int>(i % 160);
    const NameId op = b.names().Intern(fmt::format("aten::op{}", which % 40));
    const NameId kernel = b.names().Intern(fmt::format("void kernel_{}<float, 4>", which));
    const NameId shapes = b.names().Intern(fmt::format("[[32, {}, 56, 56]]", which));
    const auto correlation = static_cast<uint32_t>(2 * i + 1);
    const int64_t length = 8000 + random(3000), work = 3000 + 100 * which + random(900);
    b.AddEvent({.start = Instant{cpu},
                .duration = Duration{length},
                .lane = thread,
                .name = op,
                .kind = EventKind::kOp,
                .detail = b.AddOp({.sequence = i, .shapes = shapes})});
    b.AddEvent({.start = Instant{cpu + 1500 + random(500)},
                .duration = Duration{3500},
                .lane = thread,
                .name = call,
                .kind = EventKind::kCall,
                .correlation = correlation});
    gpu = std::max(gpu + 900 + random(300), cpu + 6000);
    b.AddEvent({.start = Instant{gpu},
                .duration = Duration{work},
                .lane = stream,
                .name = kernel,
                .kind = EventKind::kKernel,
                .correlation = correlation,
                .detail = b.AddKernel({.grid = {static_cast<uint32_t>(64 + which), 1, 1},
                                       .block = {256, 1, 1},
                                       .registers_per_thread = 64})});
    gpu += work;
    cpu += length + random(1000);
  }
  return *b.Build();
}

void Rates(benchmark::State& state, size_t events, size_t bytes) {
  const auto runs = static_cast<double>(state.iterations());
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events) * runs, benchmark::Counter::kIsRate);
  state.counters["file bytes/s"] =
      benchmark::Counter(static_cast<double>(bytes) * runs, benchmark::Counter::kIsRate);
  state.counters["bytes/event"] = static_cast<double>(bytes) / static_cast<double>(events);
}

void BM_Write(benchmark::State& state) {
  const auto trace = MadeTrace(state.range(0));
  size_t bytes = 0;
  for (auto _ : state) bytes = SerializeDdtrace(*trace)->size();
  Rates(state, trace->rows(), bytes);
}
BENCHMARK(BM_Write)->Arg(200000)->Unit(benchmark::kMillisecond);

void BM_Read(benchmark::State& state) {
  const std::string file = *SerializeDdtrace(*MadeTrace(state.range(0)));
  size_t events = 0;
  for (auto _ : state) events = (*ImportBytes(file, "bench"))->rows();
  Rates(state, events, file.size());
}
BENCHMARK(BM_Read)->Arg(200000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daydream
