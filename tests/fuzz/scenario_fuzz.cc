// Any text as a scenario, as the plan of a sweep and as a selector; what could be read is applied
// to a small graph, which then replays. No error is our own (E0901).
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "graph/text.h"
#include "graph/validate.h"
#include "report/questions/sweep_values.h"
#include "simulator/simulate.h"
#include "tests/fuzz/small_graph.h"
#include "transforms/core/select.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr size_t kMostPoints = 4;  // of a sweep that are read

void ApplyAll(const std::vector<Application>& scenario) {
  static const Graph recorded = *ParseGraph(kSmallGraph);
  Graph graph = recorded;
  for (const Application& a : scenario) {
    const auto applied = Apply(a, graph);
    DD_CHECK(applied.ok() || DiagnosticOf(applied.status()).code != "E0901");
    if (!applied.ok()) return;
  }
  // A cycle is found by the simulator, and told.
  if (Simulate(graph).ok()) DD_CHECK(Validate(graph).ok());
}

void Scenario(std::string_view text) {
  const auto scenario = ParseScenario(text);
  if (scenario.ok()) ApplyAll(*scenario);
}

}  // namespace
}  // namespace daydream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace daydream;
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Names of files lead out of the test.
  for (const char* path : {"/", ".y", ".j", ".t"}) {
    if (text.find(path) != std::string::npos) return 0;
  }
  Scenario(text);
  const std::vector<std::string> specs = {text};
  if (const auto plan = PlanSweep(specs); plan.ok()) {
    DD_CHECK(plan->points.size() <= kMostSweepPoints);
    for (size_t i = 0; i < std::min(kMostPoints, plan->points.size()); ++i) {
      Scenario(plan->points[i].spec);
    }
  }
  if (const auto selector = Selector::Compile(text); selector.ok()) {
    static const Graph graph = *ParseGraph(kSmallGraph);
    DD_CHECK(selector->Select(graph).size() <= graph.size());
  }
  return 0;
}
