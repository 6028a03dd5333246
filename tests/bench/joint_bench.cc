// Recorded ranks as one run: bars of docs/performance.md. A joint what-if of 8 ranks of 20,000
// operations, 128 ranks of 5 MB of text from their files to an answer, and a curve of 8 points up
// to 1024 ranks.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "base/check.h"
#include "report/parallel.h"
#include "report/questions/joint.h"
#include "report/questions/scale.h"
#include "trace/importer.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

unsigned Threads() { return std::min(2U, std::max(1U, std::thread::hardware_concurrency())); }

// A host that launches `kernels` kernels, each 120th of them an all-reduce of 67 MB; ranks differ
// by a few per cent.
std::string RankText(int rank, int ranks, int kernels) {
  std::string text = fmt::format(
      R"({{"distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},"traceEvents":[)", rank,
      ranks);
  const int pace = 20 + rank % 8;
  for (int i = 0; i < kernels; ++i) {
    const bool meets = i % 120 == 119;
    text += fmt::format(
        R"({}{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},)"
        R"("dur":6,"args":{{"External id":{},"correlation":{}}}}},)",
        i == 0 ? "" : ",\n", i * pace, i + 1, i + 1);
    // All end together: at the pace of the slowest rank.
    const int start = meets ? i * pace + 9 : i * pace + 8;
    const int end = meets ? i * 27 + 700 : start + 8;
    const std::string group =
        meets ? fmt::format(R"(,"Collective name":"allreduce","In msg nelems":33554432,)"
                            R"("Out msg nelems":33554432,"dtype":"Half","Group size":{},)"
                            R"("Process Group Name":"0","Seq":{})",
                            ranks, i / 120)
              : "";
    text += fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},)"
        R"("args":{{"External id":{},"device":0,"context":1,"stream":{},"correlation":{},)"
        R"("registers per thread":96,"shared memory":16384,"grid":[{},1,1],)"
        R"("block":[256,1,1]{}}}}})",
        meets ? "ncclDevKernel_AllReduce_Sum_f16_RING_LL" : "ampere_fp16_s16816gemm_tn_128x64",
        meets ? 9 : 7, start, end - start, i + 1, meets ? 9 : 7, i + 1, i % 108 + 1, group);
  }
  return text + "]}";
}

// The text of each rank in a file of its own; gone when this goes.
class RankFiles {
 public:
  RankFiles(int ranks, int kernels)
      : folder_(std::filesystem::temp_directory_path() / fmt::format("joint_bench_{}", ranks)) {
    std::filesystem::create_directories(folder_);
    for (int r = 0; r < ranks; ++r) {
      paths_.push_back((folder_ / fmt::format("rank{}.json", r)).string());
      std::ofstream(paths_.back()) << RankText(r, ranks, kernels);
    }
  }
  ~RankFiles() { std::filesystem::remove_all(folder_); }
  JointRun Load() const {
    std::vector<std::shared_ptr<const Trace>> traces(paths_.size());
    ForEachParallel(paths_.size(), Threads(), [&](size_t r) {
      auto trace = ImportFile(paths_[r]);
      DD_CHECK(trace.ok());
      traces[r] = *std::move(trace);
    });
    const std::vector<Duration> begin(paths_.size());
    auto run = MakeJointRun(std::move(traces), begin, AlignClocks::kGiven, Threads());
    DD_CHECK(run.ok());
    return *std::move(run);
  }
  double Megabytes() const {
    return static_cast<double>(std::filesystem::file_size(paths_[0])) / 1e6;
  }

 private:
  std::filesystem::path folder_;
  std::vector<std::string> paths_;
};

void BM_JointWhatIf(benchmark::State& state) {
  const JointRun run = RankFiles(8, 10'000).Load();
  auto baseline = PlayJoint(run, TransferFrom::kClass);
  const auto scenario = ParseScenario("bandwidth(x2)");
  DD_CHECK(baseline.ok() && scenario.ok());
  for (auto _ : state) {
    const JointPrediction p = PredictJoint(run, *baseline, *scenario);
    DD_CHECK(p.error.ok());
    benchmark::DoNotOptimize(p.answer.step);
  }
  state.counters["rows"] = static_cast<double>(run.matched.rows.size());
}
BENCHMARK(BM_JointWhatIf)->Unit(benchmark::kMillisecond)->UseRealTime();

// From files to the answer of `daydream ranks`.
void BM_JointFiles(benchmark::State& state) {
  const RankFiles files(static_cast<int>(state.range(0)), 11'000);
  for (auto _ : state) {
    const JointRun run = files.Load();
    auto answer = PlayJoint(run, TransferFrom::kClass);
    DD_CHECK(answer.ok());
    benchmark::DoNotOptimize(answer->step);
  }
  state.counters["MB a rank"] = files.Megabytes();
}
BENCHMARK(BM_JointFiles)->Arg(8)->Arg(128)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_ScaleCurve(benchmark::State& state) {
  auto trace = ImportFile(DAYDREAM_SOURCE_DIR "/examples/resnet50-synthetic.ddtrace");
  DD_CHECK(trace.ok());
  auto built = BuildGraph(*trace);
  DD_CHECK(built.ok());
  constexpr int kRanks[] = {1, 4, 16, 64, 128, 256, 512, 1024};
  for (auto _ : state) {
    const BuiltGraph* const one[] = {&*built};
    auto curve = ScaleOver(one, kRanks,
                           {.strategy = "ddp", .fabric = "roce-8x400", .jitter = 0.018}, Threads());
    DD_CHECK(curve.ok());
    benchmark::DoNotOptimize(curve->points.size());
  }
}
BENCHMARK(BM_ScaleCurve)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace daydream
