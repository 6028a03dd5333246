// Any events of a profiler through everything: import, graph, replay, what-ifs. Each either works
// or ends in an error with a code that is not our own mistake, and what one stage returns the next
// one takes: BuildGraph() returns only graphs that Validate() accepts.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/check.h"
#include "graph/build.h"
#include "graph/validate.h"
#include "report/predict/what_if.h"
#include "simulator/accounting.h"
#include "simulator/simulate.h"
#include "trace/importer.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr const char* kScenarios[] = {
    "amp",           "fuse",          "graphs",     "prefetch(2)", "compile",
    "checkpointing", "batch(x2)",     "layers(x2)", "no-sync",     "offload",
    "gpu(H100)",     "channels-last", "flash-attn", "roofline",    "speedup(kind:gpu,2)"};

const std::vector<std::vector<Application>>& Scenarios() {
  static const auto all = [] {
    std::vector<std::vector<Application>> parsed;
    for (const char* text : kScenarios) {
      if (auto scenario = ParseScenario(text); scenario.ok()) parsed.push_back(*scenario);
    }
    return parsed;
  }();
  return all;
}

void CheckTold(const absl::Status& status) {
  if (status.ok()) return;
  const std::string code = DiagnosticOf(status).code;
  DD_CHECK(code.size() == 5 && code != "E0901");
}

void Predict(const BuiltGraph& built) {
  const auto replay = CheckReplay(built, nullptr);
  if (!replay.ok()) return;
  WhatIfOptions options;
  options.intervals = false;
  options.explain = false;
  options.jobs = 1;
  // One of them for each input, so that an input costs little.
  const size_t which = built.graph.size() % Scenarios().size();
  const std::vector<std::vector<Application>> one = {Scenarios()[which]};
  const auto result = PredictAll(built, *replay, one, options);
  CheckTold(result.status());
  if (!result.ok()) return;
  for (const Prediction& p : result->predictions) {
    CheckTold(p.error);
    DD_CHECK(p.step.ns >= 0);
  }
}

void Run(std::string_view events) {
  const ImportOptions options = {.max_malformed = 1.0, .max_text_bytes = 16 << 20};
  const auto trace = ImportBytes(events, "fuzz", options, "kineto");
  CheckTold(trace.status());
  if (!trace.ok()) return;
  const auto built = BuildGraph(*trace);
  CheckTold(built.status());
  if (!built.ok()) return;
  const absl::Status valid = Validate(built->graph);
  if (!valid.ok()) std::fprintf(stderr, "%s\n", valid.ToString().c_str());
  DD_CHECK(valid.ok());
  const auto timeline = Simulate(built->graph, {.blockers = true});
  DD_CHECK(timeline.ok());
  for (const LaneAccount& a : Account(built->graph, *timeline)) {
    DD_CHECK(a.busy + a.gap + a.idle == timeline->makespan);
  }
  Predict(*built);
}

}  // namespace
}  // namespace daydream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  daydream::Run("{\"traceEvents\": [" + std::string(reinterpret_cast<const char*>(data), size) +
                "]}");
  return 0;
}
