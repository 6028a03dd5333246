// Traces that no program could have produced: overlapping calls, kernels before their launches,
// shared correlation ids, waits for nothing. Building must neither crash nor leave a graph that
// cannot be played.
#include <gtest/gtest.h>

#include <random>

#include "graph/build.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

constexpr std::string_view kCalls[] = {"cudaLaunchKernel",
                                       "cudaGraphLaunch",
                                       "cudaMemcpyAsync",
                                       "cudaMemcpy",
                                       "cudaMemsetAsync",
                                       "cudaDeviceSynchronize",
                                       "cudaStreamSynchronize",
                                       "cudaEventSynchronize",
                                       "cudaEventRecord",
                                       "cudaStreamWaitEvent",
                                       "cudaFree",
                                       "cudaEventQuery",
                                       "hipLaunchKernel",
                                       "cuLaunchKernel"};
constexpr std::string_view kOps[] = {"aten::mm", "autograd::engine::evaluate_function: MmBackward0",
                                     "record_param_comms", "aten::add_",
                                     "torch::autograd::AccumulateGrad"};
constexpr std::string_view kMarks[] = {"ProfilerStep#1", "Optimizer.step#SGD.step",
                                       "enumerate(DataLoader)#next", "nccl:all_reduce"};
constexpr Memory kMemories[] = {Memory::kPageable, Memory::kPinned, Memory::kDevice,
                                Memory::kUnknown};

TraceSketch RandomTrace(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto pick = [&](uint64_t n) { return random() % n; };
  TraceSketch s;
  std::vector<LaneId> threads = {s.Thread(), s.Thread(200), s.Thread(300)};
  std::vector<LaneId> streams = {s.Stream(7), s.Stream(20), s.Stream(24)};
  const int events = 20 + static_cast<int>(pick(300));
  const double span = 10 + static_cast<double>(pick(3000));
  for (int i = 0; i < events; ++i) {
    double at = static_cast<double>(pick(static_cast<uint64_t>(span)));
    double length = static_cast<double>(pick(pick(4) == 0 ? 400 : 20));
    uint32_t correlation = static_cast<uint32_t>(pick(static_cast<uint64_t>(events)));
    LaneId thread = threads[pick(threads.size())], stream = streams[pick(streams.size())];
    switch (pick(8)) {
      case 0:
        s.Op(thread, kOps[pick(std::size(kOps))], at, length, static_cast<int64_t>(pick(9)));
        break;
      case 1:
        s.Mark(thread, kMarks[pick(std::size(kMarks))], at, length);
        break;
      case 2:
      case 3:
      case 4:
        s.Call(thread, kCalls[pick(std::size(kCalls))], at, length, correlation);
        break;
      case 5:
        s.Kernel(stream, pick(4) == 0 ? "ncclKernel" : "k", at, length, correlation);
        break;
      case 6:
        s.Copy(stream, kMemories[pick(4)], kMemories[pick(4)], pick(1 << 20), at, length,
               correlation);
        break;
      default:
        s.Sync(stream,
               {.kind = static_cast<SyncKind>(pick(5)),
                .stream = static_cast<int64_t>(pick(30)),
                .wait_on_stream = static_cast<int64_t>(pick(30)),
                .record_correlation = static_cast<uint32_t>(pick(100))},
               at, correlation);
    }
  }
  s.Launch(threads[0], streams[0], "k", 1, 2, 4, 5);
  return s;
}

TEST(RandomTraces, BuildAndReplayOrFailWithAReason) {
  uint64_t replayed = 0, exact = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    TraceSketch sketch = RandomTrace(seed);
    auto trace = sketch.Build();
    for (Lags lags : {Lags::kMeasured, Lags::kTypical}) {
      auto built = BuildGraph(trace, {.lags = lags});
      if (!built.ok()) {
        EXPECT_FALSE(DiagnosticOf(built.status()).what.empty());
        continue;
      }
      auto timeline = Simulate(built->graph);
      ASSERT_TRUE(timeline.ok()) << "seed " << seed << ": " << Message(timeline.status());
      ASSERT_TRUE(Validate(built->graph).ok())
          << "seed " << seed << ": " << Message(Validate(built->graph));
      if (lags == Lags::kTypical) continue;
      ++replayed;
      bool all = true;
      for (size_t i = 0; i < built->graph.size(); ++i) {
        all = all && timeline->start[i] == built->graph.task(TaskId(i)).recorded_start;
      }
      exact += all;
    }
  }
  EXPECT_GT(replayed, 2900u);
  RecordProperty("exact", std::to_string(exact) + " of " + std::to_string(replayed));
}

}  // namespace
}  // namespace daydream
