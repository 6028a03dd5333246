// Writes PyTorch profiler JSON for tests, event by event.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "trace/importer.h"

namespace daydream {

inline std::string Slice(std::string_view category, std::string_view name, std::string_view ts,
                         std::string_view dur, std::string_view args = "",
                         std::string_view place = R"("pid": 1, "tid": 2)") {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", {}, "ts": {}, "dur": {},)"
                     "\n    \"args\": {{{}}}\n  }}",
                     category, name, place, ts, dur, args);
}

inline std::string KinetoFile(const std::vector<std::string>& events,
                              std::string_view header = "\"schemaVersion\": 1,") {
  std::string text = fmt::format("{{\n  {}\n  \"traceEvents\": [\n  ", header);
  for (size_t i = 0; i < events.size(); ++i) text += (i == 0 ? "" : ",\n  ") + events[i];
  return text + "\n  ]\n}\n";
}

inline absl::StatusOr<std::shared_ptr<const Trace>> ImportText(std::string_view text,
                                                               const ImportOptions& options = {}) {
  return ImportBytes(text, "test.json", options, "kineto");
}

// How often `what` was counted.
inline uint64_t CountOf(const Trace& trace, std::string_view what) {
  for (const ImportCount& count : trace.provenance.counts) {
    if (count.what == what) return count.count;
  }
  return 0;
}

// Rows and counts: has to be the number of events in the input.
inline uint64_t AccountedFor(const Trace& trace) {
  uint64_t sum = trace.rows();
  for (const ImportCount& count : trace.provenance.counts) {
    if (!count.repair) sum += count.count;
  }
  return sum;
}

}  // namespace daydream
