// The PyTorch profiler importer on hostile bytes: as they are, and inside a list of events.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "trace/importer.h"
#include "trace/steps.h"

namespace daydream {
namespace {

void Import(std::string_view text) {
  const auto trace =
      ImportBytes(text, "fuzz", {.max_malformed = 1.0, .max_text_bytes = 16 << 20}, "kineto");
  if (!trace.ok()) return;
  const Trace& t = **trace;
  uint64_t sum = t.rows();
  for (const ImportCount& count : t.provenance.counts) sum += count.repair ? 0 : count.count;
  DD_CHECK(sum == t.provenance.input_events);
  for (size_t row = 0; row < t.rows(); ++row) {
    DD_CHECK(t.start[row].ns >= 0 && t.duration[row].ns >= 0 && t.End(row) >= t.start[row]);
  }
  for (const Step& step : FindSteps(t).steps) DD_CHECK(step.begin <= step.end);
}

}  // namespace
}  // namespace daydream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  daydream::Import(bytes);
  daydream::Import("{\"traceEvents\": [" + std::string(bytes) + "]}");
  return 0;
}
