// Two windows of a profiler that became one file: nothing of what lies between them is a step's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/build.h"
#include "tests/graph/trace_sketch.h"
#include "tests/real_traces.h"
#include "tests/report/steady_answers.h"
#include "trace/importer.h"
#include "trace/steps.h"

namespace daydream {
namespace {

// The same without a step in the middle, and with 20 s there: the recorder sees GPU work that was
// launched while it was off, where that begins once it is on again.
std::shared_ptr<const Trace> InTwoWindows(const Trace& trace, const Step& off) {
  const Duration pause = Duration::Ms(20'000);
  absl::flat_hash_map<uint32_t, Instant> launched;  // by correlation
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] == EventKind::kCall) launched[trace.correlation[row]] = trace.start[row];
  }
  auto cut = std::make_shared<Trace>(trace);
  cut->start.clear(), cut->duration.clear(), cut->lane.clear(), cut->name.clear();
  cut->kind.clear(), cut->correlation.clear(), cut->detail.clear();
  cut->lane_begin.assign(1, 0);
  for (size_t lane = 0; lane < trace.lanes.size(); ++lane) {
    for (size_t row = trace.lane_begin[lane]; row < trace.lane_begin[lane + 1]; ++row) {
      const auto call = launched.find(trace.correlation[row]);
      const bool gpu = IsGpuWork(trace.kind[row]) && call != launched.end();
      const Instant at = gpu ? call->second : trace.start[row];
      if (at >= off.begin && at < off.end && (!gpu || trace.start[row] < off.end)) continue;
      cut->start.push_back(trace.start[row] + (at < off.begin ? Duration{} : pause));
      cut->duration.push_back(trace.duration[row]);
      cut->lane.push_back(trace.lane[row]);
      cut->name.push_back(trace.name[row]);
      cut->kind.push_back(trace.kind[row]);
      cut->correlation.push_back(trace.correlation[row]);
      cut->detail.push_back(trace.detail[row]);
    }
    cut->lane_begin.push_back(static_cast<uint32_t>(cut->start.size()));
  }
  return cut;
}

// `apart`: of the whole recording's step; its steps differ by as much.
void ExpectTheSame(std::shared_ptr<const Trace> trace, double apart) {
  const Steps steps = FindSteps(*trace);
  const SteadyAnswers whole = AskSteady(trace),
                      cut = AskSteady(InTwoWindows(*trace, steps.steps[3]));
  for (const Finding& f : cut.findings) {
    EXPECT_NE(f.kind, FindingKind::kPause) << f.text;
    EXPECT_NE(f.kind, FindingKind::kReplay) << f.text;
    EXPECT_NE(f.kind, FindingKind::kUnequalSteps) << f.text;
  }
  for (const Prediction& p : whole.predictions) {
    const auto it = std::ranges::find(cut.predictions, p.name, &Prediction::name);
    ASSERT_NE(it, cut.predictions.end());
    ASSERT_EQ(it->error.ok(), p.error.ok()) << p.name << ": " << it->error;
    EXPECT_NEAR(it->step.ms(), p.step.ms(), apart * whole.predictions[0].step.ms()) << p.name;
    for (const Duration step : it->steps) {
      EXPECT_NEAR(step.ms(), p.step.ms(), 0.1 * whole.predictions[0].step.ms()) << p.name;
    }
  }
}

// Steps of ten operators that the host needs 1 ms for; the GPU is 20 ms behind.
TEST(TwoWindows, WhatLiesBetweenIsNoStep) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0, done = 20'000;
  for (int step = 0; step < 8; ++step) {
    const double begin = now;
    for (int op = 0; op < 10; ++op, now += 1000, done += 1000) {
      s.Op(cpu, "aten::linear", now, 950);
      s.Launch(cpu, gpu, "kernel", now + 900, 10, done, 998);
    }
    s.Mark(cpu, fmt::format("ProfilerStep#{}", step), begin, now - begin - 10);
  }
  ExpectTheSame(s.Build(), 0.01);
}

TEST(TwoWindows, OfRealRecordingsNeither) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces";
  for (const char* name :
       {"loader/resnet50-v100.workers4.a.json.gz", "training/recsys-a100-rank3of8.json.gz"}) {
    SCOPED_TRACE(name);
    auto trace = ImportFile((RealTraceFolder() / name).string());
    ASSERT_TRUE(trace.ok()) << trace.status();
    ExpectTheSame(*trace, 0.04);
  }
}

}  // namespace
}  // namespace daydream
