#include "tracer/options.h"

#include <charconv>
#include <utility>

namespace daydream::tracer {
namespace {

bool SetNumber(std::string_view value, int64_t min, int64_t max, int64_t scale, int64_t& number) {
  int64_t parsed = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc() || end != value.data() + value.size()) return false;
  if (parsed < min || parsed > max) return false;
  number = parsed * scale;
  return true;
}

bool SetFlag(std::string_view value, bool& flag) {
  if (value != "0" && value != "1") return false;
  flag = value == "1";
  return true;
}

bool SetChoice(std::string_view value, std::string_view no, std::string_view yes, bool& choice) {
  if (value != no && value != yes) return false;
  choice = value == yes;
  return true;
}

bool SetCapture(std::string_view value, Options& o) {
  if (value.starts_with("nvtx:") && value.size() > 5) {
    o.capture = Capture::kNvtx;
    o.range = value.substr(5);
    return true;
  }
  if (value == "steps")
    o.capture = Capture::kSteps;
  else if (value == "none")
    o.capture = Capture::kNone;
  else if (value == "cudaProfilerApi")
    o.capture = Capture::kProfiler;
  else if (value == "time")
    o.capture = Capture::kTime;
  else
    return false;
  return true;
}

// "0,3"
bool SetNumbers(std::string_view value, std::vector<int64_t>& numbers) {
  std::vector<int64_t> parsed;
  while (!value.empty()) {
    const std::string_view part = value.substr(0, value.find(','));
    value.remove_prefix(part.size() == value.size() ? part.size() : part.size() + 1);
    if (!SetNumber(part, 0, INT32_MAX, 1, parsed.emplace_back())) return false;
  }
  if (parsed.empty()) return false;
  numbers = std::move(parsed);
  return true;
}

constexpr int64_t kManySteps = int64_t{1} << 40;
constexpr int64_t kLongMs = int64_t{1} << 40;
constexpr int64_t kMiB = int64_t{1} << 20;

// False: the value makes no sense.
bool Set(std::string_view key, std::string_view value, Options& o) {
  if (key == "capture") return SetCapture(value, o);
  if (key == "warmup") return SetNumber(value, 0, kManySteps, 1, o.warmup);
  if (key == "steps") return SetNumber(value, 1, kManySteps, 1, o.steps);
  if (key == "labels") return SetNumber(value, 0, kManySteps, 1, o.labels);
  if (key == "windows") return SetNumber(value, 1, kManySteps, 1, o.windows);
  if (key == "every") return SetNumber(value, 0, kManySteps, 1, o.every);
  if (key == "delay_ms") return SetNumber(value, 0, kLongMs, 1, o.delay_ms);
  if (key == "duration_ms") return SetNumber(value, 0, kLongMs, 1, o.duration_ms);
  if (key == "after") return SetChoice(value, "continue", "stop", o.stop_after);
  if (key == "graph") return SetChoice(value, "node", "graph", o.whole_graphs);
  if (key == "nvtx") return SetFlag(value, o.nvtx);
  if (key == "nccl") return SetFlag(value, o.nccl);
  if (key == "quiet") return SetFlag(value, o.quiet);
  if (key == "command") return SetChoice(value, "redacted", "whole", o.whole_command);
  if (key == "ranks") return SetNumbers(value, o.ranks);
  if (key == "max_events") return SetNumber(value, 1, int64_t{1} << 32, 1, o.max_events);
  if (key == "flush_ms") return SetNumber(value, 1, 60'000, 1, o.flush_ms);
  if (key == "buffer_mb") return SetNumber(value, 1, 64, kMiB, o.buffer_bytes);
  if (key == "pool_mb") return SetNumber(value, 1, 65'536, kMiB, o.pool_bytes);
  return true;
}

}  // namespace

Options ParseOptions(std::string_view text, std::vector<std::string>& problems) {
  Options options;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    size_t equals = part.find('=');
    if (part.empty()) continue;
    if (equals == std::string_view::npos ||
        !Set(part.substr(0, equals), part.substr(equals + 1), options)) {
      problems.push_back("DAYDREAM_RECORD: cannot use \"" + std::string(part) +
                         "\", the default is taken");
    }
  }
  if (options.labels > options.warmup) options.labels = options.warmup;
  if (options.pool_bytes < options.buffer_bytes) options.pool_bytes = options.buffer_bytes;
  return options;
}

}  // namespace daydream::tracer
