// A pause that a recording goes on behind as if there had been none leaves every answer as it is
// without the pause.
#include "report/questions/without_pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/real_traces.h"
#include "tests/report/steady_answers.h"
#include "trace/importer.h"

namespace daydream {
namespace {

// Everything that the host does from `at` on is so much later, and so is what it launches then. The
// GPU has done what was launched before it.
std::shared_ptr<const Trace> Paused(const Trace& trace, Instant at, Duration time) {
  std::map<uint32_t, Instant> called;
  for (size_t row = 0; row < trace.rows(); ++row) {
    if (trace.kind[row] == EventKind::kCall) called[trace.correlation[row]] = trace.start[row];
  }
  auto later = std::make_shared<Trace>(trace);
  for (size_t row = 0; row < trace.rows(); ++row) {
    const bool gpu = IsGpuWork(trace.kind[row]) || trace.kind[row] == EventKind::kSync;
    const auto call = called.find(trace.correlation[row]);
    const bool launched = gpu && trace.correlation[row] != 0 && call != called.end();
    const Instant begin = launched ? call->second : trace.start[row];
    if (begin >= at) later->start[row] = trace.start[row] + time;
    if (!gpu && begin < at && trace.End(row) > at) later->duration[row] += time;
  }
  return later;
}

// Where the n-th marked step begins.
Instant StepBegin(const Trace& trace, size_t n) {
  const Steps steps = FindSteps(trace);
  EXPECT_LT(n, steps.steps.size());
  return steps.steps[n].begin;
}

void ExpectNoDifference(const Trace& trace, const SteadyAnswers& usual, size_t step,
                        Duration time) {
  const SteadyAnswers paused =
      AskSteady(Paused(trace, StepBegin(trace, step) - Duration::Us(1), time));
  ExpectTheSame(paused, usual);
  ASSERT_FALSE(paused.findings.empty());
  EXPECT_TRUE(std::ranges::any_of(paused.findings, [&](const Finding& f) {
    return f.kind == FindingKind::kOneTime && f.about == About::kStep &&
           (f.time - time).ms() < 0.5 && (time - f.time).ms() < 0.5;
  }));
  for (const Prediction& p : paused.predictions) {
    EXPECT_TRUE(!p.error.ok() || p.confidence == Confidence::kLow) << p.name;
  }
}

TEST(WithoutPause, WaitsForWhatWasLaunchedBeforeItComeBack) {
  const auto trace = FasterHost();
  const SteadyAnswers usual = AskSteady(trace);
  for (const size_t step : {3, 5, 6}) {
    for (const int64_t ms : {500, 4000, 30'000}) {
      SCOPED_TRACE(fmt::format("{} ms before step {}", ms, step));
      ExpectNoDifference(*trace, usual, step, Duration::Ms(ms));
    }
  }
}

TEST(WithoutPause, SoDoThoseOfAFullLaunchQueueAndOfCopies) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces";
  for (const char* name : {"gpus/resnet50-bs32.v100-sxm2", "loader/resnet50-v100.workers4.a"}) {
    auto trace = ImportFile((RealTraceFolder() / fmt::format("{}.json.gz", name)).string());
    ASSERT_TRUE(trace.ok()) << trace.status();
    const SteadyAnswers usual = AskSteady(*trace);
    SCOPED_TRACE(name);
    ExpectNoDifference(**trace, usual, 3, Duration::Ms(4000));
  }
}

// The stretch in which `trace` has its longest time outside of operators, as a stall.
std::shared_ptr<const Trace> WithoutLongest(std::shared_ptr<const Trace> trace) {
  auto built = BuildGraph(std::move(trace));
  EXPECT_TRUE(built.ok()) << built.status();
  const Graph& graph = built->graph;
  Stall longest{.task = {}, .gap = true, .kind = StallKind::kOutside, .what = {}};
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (!IsHost(t.kind) || t.gap <= longest.time) continue;
    longest.task = TaskId(i), longest.time = t.gap;
  }
  return WithoutPauses(graph, {&longest, 1});
}

TEST(WithoutPause, TheRecordingIsTheOneWithout) {
  const auto trace = FasterHost();
  const auto cut =
      WithoutLongest(Paused(*trace, StepBegin(*trace, 4) - Duration::Us(1), Duration::Ms(4000)));
  ASSERT_NE(cut, nullptr);
  for (size_t row = 0; row < trace->rows(); ++row) {
    EXPECT_NEAR((cut->start[row] - trace->start[row]).us(), 0, 100) << trace->EventName(row);
  }
}

// As a recorder sees it: the GPU does at once what the program launches when it goes on.
TEST(WithoutPause, OfAGpuThatHasNothingLeftNothingIsBuiltAgain) {
  const auto trace = FasterHost();
  auto paused = std::make_shared<Trace>(
      *Paused(*trace, StepBegin(*trace, 4) - Duration::Us(1), Duration::Ms(4000)));
  Duration waits;
  for (size_t row = 0; row < paused->rows(); ++row) {
    if (!IsGpuWork(paused->kind[row])) continue;
    const bool later = paused->start[row] > trace->start[row];
    if (later && waits == Duration{}) waits = Duration::Ms(60);
    paused->start[row] = paused->start[row] - (later ? waits : Duration{});
  }
  EXPECT_EQ(WithoutLongest(paused), nullptr);
}

}  // namespace
}  // namespace daydream
