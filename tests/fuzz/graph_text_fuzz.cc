// Any bytes as graph text: reading never crashes, and what was read writes and reads back alike.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/accounting.h"
#include "simulator/critical_path.h"
#include "simulator/simulate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  const auto graph = ParseGraph(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!graph.ok()) return 0;
  const std::string text = FormatGraph(*graph);
  const auto again = ParseGraph(text);
  DD_CHECK(again.ok());
  DD_CHECK(FormatGraph(*again) == text);
  if (!Validate(*graph).ok()) return 0;
  const auto timeline = Simulate(*graph, {.blockers = true});
  DD_CHECK(timeline.ok());
  for (const LaneAccount& a : Account(*graph, *timeline)) {
    DD_CHECK(a.busy + a.gap + a.idle == timeline->makespan);
  }
  CriticalPath(*graph, *timeline);
  StepTime(*graph, *timeline);
  return 0;
}
