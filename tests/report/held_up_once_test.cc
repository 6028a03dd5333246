// What one call takes too long, once, is no part of the step: the same is predicted with and
// without it, wherever it is and whatever the GPU has in store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/build.h"
#include "simulator/simulate.h"
#include "tests/graph/trace_sketch.h"
#include "tests/real_traces.h"
#include "tests/report/steady_answers.h"
#include "trace/importer.h"

namespace daydream {
namespace {

// Launches of GPU work in steps that count, in the order in which they were recorded.
std::vector<TaskId> CountedLaunches(const Graph& graph) {
  std::vector<TaskId> calls;
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kLaunch || e.from_anchor != Anchor::kEnd) continue;
    const uint16_t step = graph.task(e.from).step;
    const bool only = graph.steps().size() == 1;
    if (only || (step > 0 && graph.steps()[step].measured)) calls.push_back(e.from);
  }
  std::ranges::sort(calls, {}, [&](TaskId t) { return graph.task(t).recorded_start; });
  return calls;
}

// What would have been recorded if `call` had taken `time` longer: the host comes later, and the
// GPU goes through what it has in store.
std::shared_ptr<const Trace> HeldUp(const Trace& trace, Graph graph, TaskId call, Duration time) {
  graph.mutable_task(call).duration += time;
  auto timeline = Simulate(graph);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  std::vector<std::map<Instant, Instant>> moved(trace.lanes.size());  // what was when, and is now
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.lane.index() >= moved.size() || t.kind == TaskKind::kDelay) continue;
    std::map<Instant, Instant>& lane = moved[t.lane.index()];
    lane[t.recorded_start] = timeline->start[i];
    if (t.event >= trace.rows()) continue;
    Instant& end = lane.try_emplace(trace.End(t.event), timeline->end[i]).first->second;
    end = std::max(end, timeline->end[i]);
  }
  const auto now = [&](LaneId lane, Instant at) {
    const auto next = moved[lane.index()].upper_bound(at);
    if (next == moved[lane.index()].begin()) return at;
    const auto last = std::prev(next);
    const Instant then = last->second + (at - last->first);
    return next == moved[lane.index()].end() ? then : std::min(then, next->second);
  };
  auto later = std::make_shared<Trace>(trace);
  for (size_t row = 0; row < trace.rows(); ++row) {
    later->start[row] = now(trace.lane[row], trace.start[row]);
    later->duration[row] = now(trace.lane[row], trace.End(row)) - later->start[row];
  }
  return later;
}

// That it is told, too, and puts everything in doubt.
void ExpectTakenOut(const SteadyAnswers& held, const SteadyAnswers& usual, Duration time) {
  ExpectTheSame(held, usual);
  ASSERT_FALSE(held.findings.empty());
  EXPECT_EQ(held.findings[0].kind, FindingKind::kOneTime) << held.findings[0].text;
  EXPECT_NEAR(held.findings[0].time.ms(), time.ms(), 0.5) << held.findings[0].text;
  for (const Prediction& p : held.predictions) {
    EXPECT_TRUE(!p.error.ok() || p.confidence == Confidence::kLow) << p.name;
  }
}

TEST(HeldUpOnce, WhatTheGpuHasInStoreHidesAPartOfIt) {
  const auto trace = FasterHost();
  auto built = BuildGraph(trace);
  ASSERT_TRUE(built.ok()) << built.status();
  const SteadyAnswers usual = AskSteady(trace);
  const std::vector<TaskId> launches = CountedLaunches(built->graph);
  ASSERT_EQ(launches.size(), 70u);
  for (const int64_t ms : {150, 400}) {
    for (const size_t at : {22, 44, 55}) {
      SCOPED_TRACE(fmt::format("{} ms in launch {}", ms, at));
      const auto held = HeldUp(*trace, built->graph, launches[at], Duration::Ms(ms));
      ExpectTakenOut(AskSteady(held), usual, Duration::Ms(ms));
    }
  }
}

TEST(HeldUpOnce, WhatItHasInStoreHidesAllOfIt) {
  const auto trace = FasterHost();
  auto built = BuildGraph(trace);
  ASSERT_TRUE(built.ok()) << built.status();
  const std::vector<TaskId> launches = CountedLaunches(built->graph);
  for (const size_t at : {33, 44, 55}) {
    SCOPED_TRACE(at);
    ExpectTheSame(AskSteady(HeldUp(*trace, built->graph, launches[at], Duration::Ms(60))),
                  AskSteady(trace));
  }
}

// Of which the GPU has up to 90 ms in store, and launches find a full queue. The first step that
// counted may be warm-up with it, clearly longer than all others.
TEST(HeldUpOnce, AFullQueueHidesAPartOfIt) {
  const auto path = RealTraceFolder() / "gpus/resnet50-bs32.v100-sxm2.json.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no ../shared/traces";
  auto trace = ImportFile(path.string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto built = BuildGraph(*trace);
  ASSERT_TRUE(built.ok()) << built.status();
  const SteadyAnswers usual = AskSteady(*trace);
  const std::vector<TaskId> launches = CountedLaunches(built->graph);
  ASSERT_GT(launches.size(), 4000u);
  for (const int64_t ms : {150, 400}) {
    for (size_t part = 1; part < 8; ++part) {
      const size_t at = launches.size() * part / 8;
      SCOPED_TRACE(fmt::format("{} ms in launch {}", ms, at));
      const SteadyAnswers held =
          AskSteady(HeldUp(**trace, built->graph, launches[at], Duration::Ms(ms)));
      const uint16_t step = built->graph.task(launches[at]).step;
      if (step == CountedSteps(built->graph).front() && held.findings.empty()) {
        ExpectTheSame(held, usual);
      } else {
        ExpectTakenOut(held, usual, Duration::Ms(ms));
      }
    }
  }
}

// A step in which a compiler runs twice for 295 ms. However long something else takes once, the
// step is what remains.
TEST(HeldUpOnce, BesideACompilerItLeavesTheStep) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces";
  for (const int size : {16, 64}) {
    const auto path =
        RealTraceFolder() / fmt::format("batch/particle-transformer.bs{}.json.gz", size);
    auto trace = ImportFile(path.string());
    ASSERT_TRUE(trace.ok()) << trace.status();
    auto built = BuildGraph(*trace);
    ASSERT_TRUE(built.ok()) << built.status();
    const std::vector<TaskId> launches = CountedLaunches(built->graph);
    for (const int64_t ms : {200, 1500, 20'000}) {
      SCOPED_TRACE(fmt::format("batch {}, {} ms", size, ms));
      const TaskId at = launches[launches.size() / 2];
      ExpectTheSame(AskSteady(HeldUp(**trace, built->graph, at, Duration::Ms(ms))),
                    AskSteady(*trace));
    }
  }
}

}  // namespace
}  // namespace daydream
