// Any bytes as an option file: reading never crashes or hangs, errors have a place, and what was
// read runs on a small graph, which then replays.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/fuzz/small_graph.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = OptionFile::Parse(text, "fuzz.yaml");
  if (!file.ok()) {
    Diagnostic d = DiagnosticOf(file.status());
    DD_CHECK(d.code.substr(0, 3) == "E04" && d.where.substr(0, 10) == "fuzz.yaml:");
    return 0;
  }
  static const Graph recorded = *ParseGraph(kSmallGraph);
  const Transform& transform = (*file)->transform();
  auto params = BindParams(transform.name, transform.params, {});
  DD_CHECK(params.ok());
  Graph graph = recorded;
  auto applied = Apply({&transform, *params, *file}, graph);
  if (!applied.ok()) {
    DD_CHECK(DiagnosticOf(applied.status()).code != "E0901");
    return 0;
  }
  Simulate(graph).status().IgnoreError();
  return 0;
}
