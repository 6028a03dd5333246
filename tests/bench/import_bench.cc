// Importing PyTorch profiler JSON, plain and gzipped: megabytes of text and events per second,
// bytes per event. The input is a real trace 19 times over (1 GB) where it lies beside the
// repository, else a made one; times, correlations and step numbers go on from copy to copy.
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/trace/kineto_text.h"
#include "tests/trace/packed.h"

namespace daydream {
namespace {

std::string ReadText(const std::string& path) {
  std::string text;
  auto source = OpenFile(path, int64_t{1} << 30);
  while (source.ok()) {
    auto chunk = (*source)->Next();
    if (!chunk.ok() || chunk->empty()) break;
    text += *chunk;
  }
  return text;
}

std::string MadeText() {
  std::vector<std::string> events;
  for (int i = 0; i < 20000; ++i) {
    const std::string ts = std::to_string(1610366662254362 + i * 100);
    const std::string id = fmt::format("\"External id\": {}, \"correlation\": {}", i, i + 1);
    events.push_back(Slice("cpu_op", "aten::mm", ts, "90",
                           fmt::format(R"("Input Dims": [[{}, 4], []], "Ev Idx": {})", i % 64, i)));
    events.push_back(Slice("cuda_runtime", "cudaLaunchKernel", ts, "4", id));
    events.push_back(fmt::format(R"({{"ph": "s", "id": {}, "pid": 1, "tid": 2, "ts": {},)"
                                 R"( "cat": "ac2g", "name": "ac2g"}})",
                                 i + 1, ts));
    events.push_back(Slice("kernel", fmt::format("void gemm_{}<float, 4>(Args)", i % 40), ts, "30",
                           id + R"(, "device": 0, "stream": 7, "grid": [1, 2, 3])"));
  }
  return KinetoFile(events);
}

// Appends `events` with the numbers of time and identity moved on by `copy` windows.
void AppendShifted(std::string_view events, uint64_t copy, std::string* out) {
  constexpr uint64_t kWindowUs = 2000000, kIds = 200000;
  constexpr std::string_view kKeys[] = {"ts\": ", "correlation\": ", "External id\": ", "id\": "};
  size_t done = 0;
  for (size_t at = events.find("\": "); at != std::string_view::npos;
       at = events.find("\": ", at + 1)) {
    for (std::string_view key : kKeys) {
      size_t end = at + 3;
      if (end < key.size() || events.substr(end - key.size(), key.size()) != key) continue;
      uint64_t value = 0;
      size_t digit = end;
      for (; events[digit] >= '0' && events[digit] <= '9'; ++digit) {
        value = value * 10 + static_cast<uint64_t>(events[digit] - '0');
      }
      if (digit == end) break;
      out->append(events, done, end - done);
      *out += std::to_string(value + copy * (key[0] == 't' ? kWindowUs : kIds));
      done = digit;
      break;
    }
  }
  out->append(events, done);
}

const std::string& BigText() {
  static const std::string big = [] {
    std::string one = ReadText(DAYDREAM_DATA_DIR "/traces/training/sharded-v100-rank1of2.json.gz");
    if (one.empty()) one = MadeText();
    size_t first = one.find('[', one.find("\"traceEvents\"")) + 1;
    size_t last = one.rfind(']');
    std::string_view events = std::string_view(one).substr(first, last - first);
    std::string text = one.substr(0, first);
    for (uint64_t copy = 0; copy < 19; ++copy) {
      if (copy > 0) text += ',';
      AppendShifted(events, copy, &text);
    }
    return text + one.substr(last);
  }();
  return big;
}

void Import(benchmark::State& state, std::string_view bytes) {
  double events = 0, held = 0;
  for (auto _ : state) {
    auto trace = ImportBytes(bytes, "bench");
    DD_CHECK(trace.ok());
    events = static_cast<double>((*trace)->provenance.input_events);
    held = static_cast<double>((*trace)->MemoryBytes());
  }
  const auto runs = static_cast<double>(state.iterations());
  const auto text = static_cast<double>(BigText().size());
  using benchmark::Counter;
  state.counters["text_MB/s"] = Counter(runs * text * 1e-6, Counter::kIsRate);
  state.counters["Mevents/s"] = Counter(runs * events * 1e-6, Counter::kIsRate);
  state.counters["bytes/event"] = held / events;
}

void ImportPlain(benchmark::State& state) { Import(state, BigText()); }
BENCHMARK(ImportPlain)->Unit(benchmark::kMillisecond)->Iterations(3);

void ImportGzip(benchmark::State& state) {
  static const std::string packed = Gzip(BigText());
  Import(state, packed);
}
BENCHMARK(ImportGzip)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace daydream
