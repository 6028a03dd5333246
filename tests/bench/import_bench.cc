// Importing PyTorch profiler JSON, plain and gzipped: megabytes of text and events per second,
// bytes per event, and how much more memory than the trace has the import needs at its peak. The
// input is a real trace 19 times over (1 GB) where it lies beside the repository, else a made one;
// times, correlations and step numbers go on from copy to copy. DD_IMPORT_FILE=FILE measures a file
// of your own, of any format.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
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

// A line of /proc/self/status in bytes: VmRSS, or VmHWM, the most since ForgetPeak().
double StatusBytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}
void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << 5; }

using Importing = std::function<absl::StatusOr<std::shared_ptr<const Trace>>()>;

void Import(benchmark::State& state, double text, const Importing& import) {
  double events = 0, held = 0, most = 0;
  for (auto _ : state) {
    ForgetPeak();
    const double before = StatusBytes("VmRSS:");
    auto trace = import();
    DD_CHECK(trace.ok());
    most = std::max(most, StatusBytes("VmHWM:") - before);
    events = static_cast<double>((*trace)->provenance.input_events);
    held = static_cast<double>((*trace)->MemoryBytes());
  }
  const auto runs = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["MB/s"] = Counter(runs * text * 1e-6, Counter::kIsRate);
  state.counters["Mevents/s"] = Counter(runs * events * 1e-6, Counter::kIsRate);
  state.counters["bytes/event"] = held / events;
  state.counters["peak_bytes/event"] = most / events;
  state.counters["peak_over_trace_%"] = 100 * (most / held - 1);
}

void ImportPlain(benchmark::State& state) {
  Import(state, static_cast<double>(BigText().size()),
         [] { return ImportBytes(BigText(), "bench"); });
}
BENCHMARK(ImportPlain)->Unit(benchmark::kMillisecond)->Iterations(3);

void ImportGzip(benchmark::State& state) {
  static const std::string packed = Gzip(BigText());
  Import(state, static_cast<double>(BigText().size()), [] { return ImportBytes(packed, "bench"); });
}
BENCHMARK(ImportGzip)->Unit(benchmark::kMillisecond)->Iterations(3);

void ImportYours(benchmark::State& state) {
  const char* path = std::getenv("DD_IMPORT_FILE");
  if (path == nullptr) {
    state.SkipWithError("DD_IMPORT_FILE names no file");
    return;
  }
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  Import(state, bytes, [path] { return ImportFile(path); });
}
BENCHMARK(ImportYours)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace daydream
