// What holds of every trace that an importer makes, whatever the bytes were.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "trace/importer.h"
#include "trace/steps.h"

namespace daydream {

inline void ImportAndCheck(std::string_view bytes, std::string_view format) {
  const auto trace =
      ImportBytes(bytes, "fuzz", {.max_malformed = 1.0, .max_text_bytes = 16 << 20}, format);
  if (!trace.ok()) return;
  const Trace& t = **trace;
  uint64_t sum = t.rows();
  for (const ImportCount& count : t.provenance.counts) sum += count.repair ? 0 : count.count;
  DD_CHECK(sum == t.provenance.input_events);
  for (size_t row = 0; row < t.rows(); ++row) {
    DD_CHECK(t.start[row].ns >= 0 && t.duration[row].ns >= 0 && t.End(row) >= t.start[row]);
  }
  for (const DataDependency& d : t.dependencies) {
    DD_CHECK(d.producer < t.rows() && d.consumer < t.rows());
  }
  for (const Step& step : FindSteps(t).steps) DD_CHECK(step.begin <= step.end);
}

inline void ImportAndCheck(const uint8_t* data, size_t size, std::string_view format) {
  ImportAndCheck({reinterpret_cast<const char*>(data), size}, format);
}

}  // namespace daydream
