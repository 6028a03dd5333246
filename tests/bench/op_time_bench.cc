// Predictions of operations: the promise is 0.5 us for a new product in the middle of many, which
// bars.py holds, and 2 us for any shape.
#include <benchmark/benchmark.h>

#include <random>

#include "costmodel/op_time.h"

namespace daydream {
namespace {

std::vector<OpWork> RandomProducts(size_t n, bool batched) {
  std::mt19937_64 random(7);
  auto size = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % most); };
  std::vector<OpWork> work;
  for (size_t i = 0; i < n; ++i) {
    work.push_back(
        WorkOfProduct({batched ? 2 + size(256) : 1, size(8192), size(8192), size(8192)}));
  }
  return work;
}

void Predict(benchmark::State& state, const std::vector<OpWork>& work) {
  const DeviceSpec& gpu = *FindDeviceSpec("H100-SXM5-80GB");
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(PredictOp(gpu, work[i], DType::kBf16));
    i = i + 1 == work.size() ? 0 : i + 1;
  }
}

void BM_NewProduct(benchmark::State& state) { Predict(state, RandomProducts(1000, false)); }
BENCHMARK(BM_NewProduct);
void BM_NewBatchedProduct(benchmark::State& state) { Predict(state, RandomProducts(1000, true)); }
BENCHMARK(BM_NewBatchedProduct);
// Few tiles, long k: every split is tried for every tile.
void BM_WorstProduct(benchmark::State& state) {
  Predict(state, {WorkOfProduct({1, 64, 64, 1 << 20})});
}
BENCHMARK(BM_WorstProduct);
void BM_NewElementwise(benchmark::State& state) { Predict(state, {WorkOfElements(1e7)}); }
BENCHMARK(BM_NewElementwise);
void BM_NewSoftmax(benchmark::State& state) {
  Predict(state, {WorkOfRows({.rows = 8192, .columns = 2048})});
}
BENCHMARK(BM_NewSoftmax);

void BM_KnownShape(benchmark::State& state) {
  OpTimes times(*FindDeviceSpec("H100-SXM5-80GB"));
  const std::vector<OpWork> work = RandomProducts(100, false);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(times.Of(work[i], DType::kBf16));
    i = i + 1 == work.size() ? 0 : i + 1;
  }
}
BENCHMARK(BM_KnownShape);

}  // namespace
}  // namespace daydream
