// Records that contradict each other are told, and nothing is said of those that do not.
#include "report/questions/record_findings.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "report/questions/recorder_findings.h"
#include "tests/graph/trace_sketch.h"
#include "trace/recording/lacks.h"
#include "trace/rows/far_events.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Sixty operators, 100 us apart, each with a launch of 10 us and a kernel of 50; `change` adds to
// the i-th what should not be there.
std::vector<Finding> Found(double op_every, double call_us,
                           const std::function<void(TraceSketch&, LaneId, LaneId, int)>& change) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 60; ++i) {
    s.Op(cpu, "aten::relu", i * op_every, 20);
    s.Launch(cpu, gpu, "kernel", 100 * i + 5, call_us, 100 * i + 20, 50);
    change(s, cpu, gpu, i);
  }
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return FindingsOfRecords(built->graph);
}

// A clean recording with something that did not become an event.
std::vector<Finding> FoundWithCount(const ImportCount& count) {
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 60; ++i) {
    s.Op(cpu, "aten::relu", 100 * i, 20);
    s.Launch(cpu, gpu, "kernel", 100 * i + 5, 10, 100 * i + 20, 50);
  }
  auto trace = std::make_shared<Trace>(*s.Build());
  trace->provenance.counts = {count};
  trace->provenance.input_events = 180 + (count.repair ? 0 : count.count);
  auto built = BuildGraph(trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return FindingsOfRecords(built->graph);
}

void Nothing(TraceSketch&, LaneId, LaneId, int) {}

void ExpectOne(const std::vector<Finding>& found, FindingKind kind, std::string_view text) {
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kind);
  EXPECT_THAT(found[0].text, HasSubstr(text));
}

TEST(RecordFindings, ACleanRecordingHasNone) { EXPECT_THAT(Found(100, 10, Nothing), IsEmpty()); }

TEST(RecordFindings, WorkThatIsThereTwice) {
  const auto found = Found(100, 10, [](TraceSketch& s, LaneId, LaneId gpu, int i) {
    if (i < 3) s.Kernel(gpu, "kernel", 100 * i + 20, 50);
  });
  ExpectOne(found, FindingKind::kTwice, "3 of 63 GPU operations are in the file twice");
}

TEST(RecordFindings, EventsThatAreLost) {
  const auto lose = [](uint64_t n, bool loss, bool event) {
    return FoundWithCount(
        {.what = "bad rows", .count = n, .loss = loss, .reason = "no time", .repair = !event});
  };
  ExpectOne(lose(2, true, true), FindingKind::kLost,
            "2 of 182 recorded events are lost, most of them bad rows (no time)");
  EXPECT_THAT(lose(1, true, true), IsEmpty()) << "less than a hundredth";
  EXPECT_THAT(lose(90, false, true), IsEmpty()) << "not needed for an answer";
  EXPECT_THAT(lose(90, true, false), IsEmpty()) << "mended";
  EXPECT_THAT(FoundWithCount({.what = std::string(kOtherWindows), .count = 90, .loss = true}),
              IsEmpty())
      << "this window is whole";
}

TEST(RecordFindings, KernelsOfACopyOrOfAnothersLaunch) {
  ExpectOne(Found(100, 10,
                  [](TraceSketch& s, LaneId cpu, LaneId gpu, int i) {
                    s.Call(cpu, "cudaMemcpyAsync", 100 * i + 30, 5, 5000 + i);
                    if (i < 2) s.Kernel(gpu, "kernel", 100 * i + 80, 5, 5000 + i);
                  }),
            FindingKind::kWrongLaunch, "2 of 62 kernels hang on a call");
  ExpectOne(Found(100, 10,
                  [](TraceSketch& s, LaneId, LaneId gpu, int i) {
                    if (i < 2) s.Kernel(gpu, "kernel", 100 * i + 80, 5, 1001 + i);
                  }),
            FindingKind::kWrongLaunch, "2 of 62 kernels hang on a call");
}

TEST(RecordFindings, CallsOfAGraphLaunchManyKernels) {
  const auto found = Found(100, 10, [](TraceSketch& s, LaneId cpu, LaneId gpu, int i) {
    s.Call(cpu, "cudaGraphLaunch", 100 * i + 30, 5, 5000 + i);
    for (int k = 0; k < 3; ++k) s.Kernel(gpu, "kernel", 100 * i + 80 + 5 * k, 4, 5000 + i);
  });
  EXPECT_THAT(found, IsEmpty());
}

TEST(RecordFindings, LaunchesThatTakeNoTime) {
  ExpectOne(Found(100, 0, Nothing), FindingKind::kNoTime, "60 of 60 launches take 0 ns");
}

// Kineto's JSON is in microseconds; a tool that writes others makes launches of 5 ns or 5 ms.
TEST(RecordFindings, TimesInAnotherUnit) {
  ExpectOne(Found(100, 0.005, Nothing), FindingKind::kUnits,
            "half of the launches take 5 ns or less");
  ExpectOne(Found(100, 0.9, Nothing), FindingKind::kUnits, "half of the launches take 900 ns or");
  EXPECT_EQ(Found(100, 0.9, Nothing)[0].about, About::kStep) << "it is in that unit, too";
  EXPECT_THAT(Found(100, 1.3, Nothing), IsEmpty());
  TraceSketch s;
  LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 60; ++i) {
    s.Op(cpu, "aten::relu", 100000 * i, 20000);
    s.Launch(cpu, gpu, "kernel", 100000 * i + 5000, 5000, 100000 * i + 20000, 50000);
  }
  ExpectOne(FindingsOfRecords(BuildGraph(s.Build())->graph), FindingKind::kUnits,
            "half of the launches take 5.00 ms or more");
}

// Launches of one thread, or of two in turn, with an operator or none.
std::vector<Finding> OfThreads(int threads, bool op) {
  TraceSketch s;
  std::vector<LaneId> cpus;
  cpus.reserve(static_cast<size_t>(threads));
  for (int k = 0; k < threads; ++k) cpus.push_back(s.Thread(100 + k));
  const LaneId gpu = s.Stream();
  if (op) s.Op(cpus[0], "aten::relu", 0, 20);
  for (int i = 0; i < 60; ++i) {
    s.Launch(cpus[static_cast<size_t>(i % threads)], gpu, "kernel", 100 * i + 5, 10, 100 * i + 20,
             50);
  }
  return FindingsOfRecords(BuildGraph(s.Build())->graph);
}

TEST(RecordFindings, SeveralThreadsWithoutOperators) {
  ExpectOne(OfThreads(2, false), FindingKind::kNoOperators, "2 threads launch work");
  EXPECT_THAT(OfThreads(1, false), IsEmpty()) << "nothing is handed over";
  EXPECT_THAT(OfThreads(2, true), IsEmpty());
}

TEST(RecordFindings, OperatorsThatBeginAtOnce) {
  ExpectOne(Found(0, 10, Nothing), FindingKind::kNoTime, "60 operators begin at 1 instant");
}

// Sixty operators of one thread, and sixty launches of it or of another, `later` us behind them.
std::vector<Finding> LaunchesAt(bool same_thread, double later, int launches = 60) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), other = s.Thread(101), gpu = s.Stream();
  for (int i = 0; i < 60; ++i) {
    s.Op(cpu, "aten::relu", 100 * i, 20);
    if (i >= launches) continue;
    s.Launch(same_thread ? cpu : other, gpu, "kernel", 100 * i + later, 10, 100 * i + later + 15,
             50);
  }
  return FindingsOfRecords(BuildGraph(s.Build())->graph);
}

TEST(RecordFindings, LaunchesOutsideOfAllOperators) {
  ExpectOne(
      LaunchesAt(false, 5), FindingKind::kNoOperators,
      "60 of 60 launches are of threads of which no launch lies within one of the 60 operators");
  EXPECT_EQ(LaunchesAt(true, 30).size(), 1u);
  EXPECT_THAT(LaunchesAt(true, 5), IsEmpty());
  EXPECT_THAT(LaunchesAt(false, 5, 49), IsEmpty()) << "few, as of a program without a framework";
}

// `nameless` of sixty kernels have the name that importers give to those without.
std::vector<Finding> WithoutNames(int nameless) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 60; ++i) {
    s.Launch(cpu, gpu, i < nameless ? "unnamed kernel" : "kernel", 100 * i, 10, 100 * i + 15, 50);
  }
  return FindingsOfRecords(BuildGraph(s.Build())->graph);
}

TEST(RecordFindings, KernelsWithoutNames) {
  ExpectOne(WithoutNames(6), FindingKind::kLost, "6 of 60 kernels have no name");
  EXPECT_THAT(WithoutNames(5), IsEmpty()) << "less than a tenth";
}

// Two threads that take turns, each with launches in operators; those of the second are backward
// work by their names or are not.
std::vector<Finding> TurnsOf(const std::string& second, int launches) {
  TraceSketch s;
  const LaneId main = s.Thread(), other = s.Thread(200), gpu = s.Stream();
  s.Op(main, "aten::begin", 0, 1);
  for (int i = 0; i < 2 * launches; ++i) {
    const LaneId thread = i < launches ? main : other;
    s.Op(thread, i < launches ? "aten::relu" : second, 100 * i + 2, 90);
    s.Launch(thread, gpu, "kernel", 100 * i + 5, 10, 100 * i + 20, 50);
  }
  s.Op(main, "aten::end", 200 * launches + 10, 20);
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return FindingsOfRecords(built->graph);
}

TEST(RecordFindings, ThreadsOfWhichNothingTellsWhichWaitsForWhich) {
  ExpectOne(
      TurnsOf("renamed", 40), FindingKind::kNoOperators,
      "2 threads launch work, and nothing tells which waits for which of 2 of them (80 of 80");
  EXPECT_THAT(TurnsOf("autograd::engine::evaluate_function: ReluBackward0", 40), IsEmpty());
  EXPECT_THAT(TurnsOf("renamed", 20), IsEmpty()) << "few, as of a program without a framework";
}

// A kernel of another stream waits for the first; a launch has no call where `unlaunched`.
std::vector<Finding> FoundWithLack(std::string_view lack, bool waits, bool unlaunched) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream(7), other = s.Stream(8);
  s.Launch(cpu, gpu, "first", 0, 5, 20, 100);
  if (waits) s.Call(cpu, "cudaStreamWaitEvent", 10, 2, 1);
  s.Launch(cpu, other, "second", 15, 5, waits ? 121 : 30, 10);
  if (unlaunched) s.Kernel(gpu, "third", 200, 10, 77);
  if (lack == kLackDeviceWaits && waits) s.Call(cpu, "cudaDeviceSynchronize", 300, 2, 9);
  auto trace = std::make_shared<Trace>(*s.Build());
  trace->provenance.software = {{fmt::format("{}{}", kLacks, lack), "what follows"}};
  auto built = BuildGraph(trace);
  EXPECT_TRUE(built.ok()) << built.status();
  return FindingsOfRecorder(built->graph, built->report);
}

TEST(RecordFindings, WhatAnOlderCuptiDoesNotTellIsSaidWhereTheProgramDoesIt) {
  ExpectOne(FoundWithLack(kLackEventIds, true, false), FindingKind::kNotTold, "what follows");
  EXPECT_THAT(FoundWithLack(kLackEventIds, false, true), IsEmpty());
  ExpectOne(FoundWithLack(kLackDriverCalls, false, true), FindingKind::kNotTold, "what follows");
  EXPECT_THAT(FoundWithLack(kLackDriverCalls, true, false), IsEmpty());
  ExpectOne(FoundWithLack(kLackDeviceWaits, true, false), FindingKind::kNotTold, "what follows");
  EXPECT_THAT(FoundWithLack(kLackDeviceWaits, false, true), IsEmpty());
}

}  // namespace
}  // namespace daydream
