// The text form of graphs, and the simulator behind it: whatever parses can be written, read back,
// validated and played.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/simulate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = daydream::ParseGraph(text);
  if (!graph.ok()) return 0;
  const std::string written = daydream::FormatGraph(*graph);
  const auto again = daydream::ParseGraph(written);
  DD_CHECK(again.ok());
  DD_CHECK(daydream::FormatGraph(*again) == written);
  if (!daydream::Validate(*graph).ok()) return 0;
  const auto timeline = daydream::Simulate(*graph, {.blockers = true});
  if (!timeline.ok()) return 0;
  for (size_t t = 0; t < graph->size(); ++t) DD_CHECK(timeline->end[t] >= timeline->start[t]);
  return 0;
}
