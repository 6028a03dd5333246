// Steps last from one end of GPU work to the next, whichever of them waited and whatever runs
// ahead.
#include "graph/step_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "graph/build.h"
#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

Duration StepUnder(Graph& graph, std::string_view spec) {
  const auto scenario = ParseScenario(spec);
  EXPECT_TRUE(scenario.ok()) << Message(scenario.status());
  for (const Application& a : *scenario) {
    const auto applied = Apply(a, graph);
    EXPECT_TRUE(applied.ok()) << Message(applied.status());
  }
  return StepTime(graph, Simulate(graph).value());
}

// Each step copies 12 MB from pageable memory (1 ms) and then computes for 5 ms.
std::string Steps(int n) {
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\n";
  for (int i = 0; i < n; ++i) text += fmt::format("step \"{}\"\n", i);
  for (int i = 0; i < n; ++i) {
    text += fmt::format(
        "a{0} cpu0   call 2us \"cudaMemcpyAsync\" step={0}\n"
        "m{0} gpu0.7 memcpy 1000us \"Memcpy HtoD\" bytes=12000000 from=pageable to=device step={0} "
        "after a{0} launch\n"
        "b{0} cpu0   call 2us \"cudaLaunchKernel\" step={0}\n"
        "k{0} gpu0.7 kernel 5000us \"sgemm\" step={0} after b{0} launch\n",
        i);
  }
  return text;
}

TEST(StepWindows, WorkThatRunsAheadOnALaneOfItsOwnStartsNoStep) {
  auto graph = ParseGraph(Steps(6));
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  EXPECT_EQ(StepTime(*graph, Simulate(*graph).value()), Duration::Us(6000));
  // All copies run at once, and the kernels one after the other as before.
  EXPECT_EQ(StepUnder(*graph, "pin-memory"), Duration::Us(5000));
}

// A batch is fetched, a kernel launched, and then the host works for 50 us.
std::string LoaderStep(int step, int fetch, int kernel) {
  return fmt::format(
      "f{0} cpu0   host {1}us \"next(loader)\" step={0}\n"
      "c{0} cpu0   call 2us \"cudaLaunchKernel\" step={0}\n"
      "k{0} gpu0.7 kernel {2}us \"sgemm\" step={0} after c{0} launch\n"
      "h{0} cpu0   host 50us \"python\" step={0}\n",
      step, fetch, kernel);
}

std::vector<Duration> PeriodsOf(const Graph& graph) {
  return StepPeriods(graph, Simulate(graph).value());
}

// What a stopwatch shows does not depend on which of the steps had to wait, and the step that did
// is the one that took longer.
TEST(StepWindows, TheHostsWaitBeforeTheGpuWorkOfAStepIsTimeOfThatStep) {
  for (int slow = 1; slow <= 3; ++slow) {
    std::string text = "lane cpu0 thread\nlane gpu0.7 stream\nstep \"0\" unmeasured\n";
    for (int i = 1; i <= 3; ++i) text += fmt::format("step \"{}\"\n", i);
    for (int i = 0; i <= 3; ++i) text += LoaderStep(i, i == slow ? 310 : 10, 30);
    const auto graph = ParseGraph(text);
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    std::vector<Duration> expected(3, Duration::Us(62));
    expected[static_cast<size_t>(slow) - 1] = Duration::Us(362);
    EXPECT_EQ(PeriodsOf(*graph), expected) << "slow step " << slow;
    EXPECT_EQ(StepTime(*graph, Simulate(*graph).value()), Duration::Us(162));
  }
}

// What is known before the first step is work whose launch was not recorded. The steps take what
// they took: from where that ended.
TEST(StepWindows, AFirstStepBehindABacklogBeginsNoEarlierThanItsHost) {
  for (const int behind : {5, 40}) {
    std::string text = "lane cpu0 thread\nlane gpu0.7 stream\nstep \"before\" unmeasured backlog\n";
    for (int i = 1; i <= 2; ++i) text += fmt::format("step \"{}\"\n", i);
    text += fmt::format("k0 gpu0.7 kernel {}us \"sgemm\" step=0\n", behind);
    for (int i = 1; i <= 2; ++i) text += LoaderStep(i, 10, 30);
    auto graph = ParseGraph(text);
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    // Kernels end at 42 and 104 behind a backlog of 5 us, at 70 and 104 behind one of 40.
    const std::vector<Duration> steps = behind == 5
                                            ? std::vector{Duration::Us(37), Duration::Us(62)}
                                            : std::vector{Duration::Us(30), Duration::Us(34)};
    EXPECT_EQ(PeriodsOf(*graph), steps);
    // A backlog that takes no time makes no step longer than its host.
    EXPECT_EQ(StepUnder(*graph, "free-gpu"), Duration::Us(37)) << "of 12 and 62";
  }
}

TEST(StepWindows, StepsThatWaitedForTheirHostAreNoShorterThanBetweenTheirLastLaunches) {
  // The GPU ends 45 us behind its launch in step 0, 100 in step 1 and 20 in step 2, so that the
  // ends of 0 and 2 are 149 us apart, and 161.5 with kernels twice as fast. Their launches are 174.
  const auto steps = [](std::string_view led, std::string_view last) {
    return fmt::format("lane cpu0 thread\nlane gpu0.7 stream\nstep \"0\"\n{}{}{}{}",
                       fmt::format("step \"1\"{0}\nstep \"2\"{0}\n", led), LoaderStep(0, 10, 45),
                       LoaderStep(1, 10, 100), last);
  };
  const std::string last = LoaderStep(2, 60, 20);
  auto free = ParseGraph(steps("", last)), led = ParseGraph(steps(" host-led", last));
  ASSERT_TRUE(free.ok() && led.ok()) << Message(led.status());
  EXPECT_NE(FormatGraph(*led).find("step \"2\" host-led"), std::string::npos);
  EXPECT_THAT(PeriodsOf(*free), testing::ElementsAre(Duration::Us(117), Duration::Us(32)));
  EXPECT_THAT(PeriodsOf(*led), testing::ElementsAre(Duration::Us(62), Duration::Us(112)));
  EXPECT_GT(StepUnder(*free, "speedup(kernel:.,by=2)"), Duration::Us(149) / 2);
  EXPECT_EQ(StepUnder(*led, "speedup(kernel:.,by=2)"), Duration::Us(174) / 2);
  // A host that waited for the GPU launched early before that, which is no time of these steps.
  const auto waited = ParseGraph(steps(" host-led host-waited", last));
  ASSERT_TRUE(waited.ok()) << Message(waited.status());
  EXPECT_NE(FormatGraph(*waited).find("host-led host-waited"), std::string::npos);
  EXPECT_THAT(PeriodsOf(*waited), testing::ElementsAre(Duration::Us(117), Duration::Us(32)));
  // A launch that takes 3 us longer to arrive belongs to it, whatever the kernels take.
  const auto lags =
      ParseGraph(steps(" host-led",
                       "f2 cpu0   host 60us \"next(loader)\" step=2\n"
                       "c2 cpu0   call 3us \"cudaLaunchKernel\" step=2\n"
                       "k2 gpu0.7 kernel 20us \"sgemm\" step=2 after c2 launch +2us\n"));
  ASSERT_TRUE(lags.ok()) << Message(lags.status());
  EXPECT_EQ(PeriodsOf(*lags).back(), Duration::Us(115));
}

bool SameExtent(const StepExtent& x, const StepExtent& y) {
  const auto same = [](const StepWindow& a, const StepWindow& b) {
    return a.begin == b.begin && a.end == b.end;
  };
  if (x.host.has_value() != y.host.has_value()) return false;
  return x.gpu == y.gpu && x.any == y.any && x.first == y.first && x.last == y.last &&
         same(x.all, y.all) && (!x.host.has_value() || same(*x.host, *y.host)) &&
         x.launched == y.launched;
}

// Tasks may be told one after the other, and launches by step: then nobody looks for them.
TEST(StepWindows, WhatIsToldIsWhatIsFound) {
  for (const char* name : {"launch-bound", "resnet50"}) {
    SCOPED_TRACE(name);
    const Graph graph = Example(name).graph;
    const Timeline played = Simulate(graph).value();
    const std::vector<StepExtent> found = StepExtents(graph, played.start, played.end);
    TasksOfSteps tasks(graph);
    for (size_t i = graph.size(); i-- > 0;) {  // in any order
      tasks.Add(StepMarkOf(graph.tasks()[i]), played.start[i], played.end[i]);
    }
    const StepMarks marks(graph);
    StepMarks::Launches launches(graph.steps().size());
    for (size_t s = 0; s < launches.size(); ++s) {
      launches[s].assign(marks.launches(s).begin(), marks.launches(s).end());
    }
    const auto told = StepExtents(graph, std::move(tasks), &launches, played.start, played.end);
    ASSERT_EQ(told.size(), found.size());
    for (size_t s = 0; s < told.size(); ++s) EXPECT_TRUE(SameExtent(told[s], found[s])) << s;
    EXPECT_TRUE(std::ranges::any_of(told, [](const auto& e) { return e.launched.has_value(); }));
  }
}

TEST(StepWindows, StepsWhoseGpuIsBehindGoByItsEnds) {
  // Kernels of 100 us, launched every 62: their ends say how long a step takes, led or not.
  std::string text = "lane cpu0 thread\nlane gpu0.7 stream\n";
  for (int i = 0; i < 4; ++i) text += fmt::format("step \"{}\" host-led\n", i);
  for (int i = 0; i < 4; ++i) text += LoaderStep(i, 10, 100);
  const auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  EXPECT_EQ(PeriodsOf(*graph), std::vector<Duration>(3, Duration::Us(100)));
}

TEST(StepWindows, TheOnlyCountedStepBeginsNoEarlierThanItsHost) {
  // The GPU is busy until 201 us with what was launched before; the host of the step begins at 100.
  auto graph = ParseGraph(
      "lane cpu0 thread\nlane gpu0.7 stream\nstep \"before\" unmeasured\nstep \"1\"\n"
      "s  cpu0   host 100us \"before\" step=0\n"
      "k0 gpu0.7 kernel 200us \"sgemm\" step=0 earliest 1us\n"
      "w1 cpu0   call 0us \"cudaDeviceSynchronize\" step=1 until k0 hostwait\n"
      "h1 cpu0   host 50us \"python\" step=1\n"
      "c1 cpu0   call 2us \"cudaLaunchKernel\" step=1\n"
      "k1 gpu0.7 kernel 30us \"sgemm\" step=1 after c1 launch\n");
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  EXPECT_EQ(StepTime(*graph, Simulate(*graph).value()), Duration::Us(82));
  // 50 us of the host, the launch, and the kernel; not 152 us from the end of the kernel before.
  EXPECT_EQ(StepUnder(*graph, "speedup(kernel:.,by=1000)"), Duration::Ns(52030));
}

// What each lane has to do in each step.
std::vector<std::vector<Duration>> Busy(const Graph& graph) {
  std::vector<std::vector<Duration>> busy(graph.lanes().size(),
                                          std::vector<Duration>(graph.steps().size()));
  for (const Task& task : graph.tasks()) {
    if (IsGpu(task.kind) && !task.removed) busy[task.lane.index()][task.step] += task.duration;
  }
  return busy;
}

// A wait of 5 us that ends at 195 for a kernel that ends at 227: clocks that a fuzzer bent. The
// step was -22 us long.
TEST(StepWindows, NoWaitMakesAStepShorterThanNothing) {
  const StepExtent before = {
      .gpu = true, .any = true, .first = Instant::AtNs(197'000), .last = Instant::AtNs(227'000)};
  const StepExtent own = {.any = true,
                          .first = Instant::AtNs(95'000),
                          .last = Instant::AtNs(195'000),
                          .host = StepWindow{Instant::AtNs(217'000), Instant::AtNs(195'000)}};
  const std::vector<StepExtent> extents = {before, own};
  EXPECT_EQ(StepWindows(extents)[1].length(), Duration{});
}

TEST(StepWindows, NoStepIsShorterThanWhatTheLaneItBeginsOnHasToDo) {
  if (RealTraces().empty()) GTEST_SKIP() << "no ../shared/traces beside the repository";
  for (const char* name :
       {"training/resnet18-bs128-2080ti.json.gz", "loader/resnet50-v100.workers4.a.json.gz",
        "loader/resnet50-v100.workers0.b.json.gz"}) {
    const auto trace = ImportFile((RealTraceFolder() / name).string());
    ASSERT_TRUE(trace.ok());
    auto built = BuildGraph(*trace);
    ASSERT_TRUE(built.ok());
    Graph& graph = built->graph;
    StepUnder(graph, "pin-memory");
    const std::vector<Duration> periods = StepPeriods(graph, Simulate(graph).value());
    const auto busy = Busy(graph);
    for (size_t l = 0; l < busy.size(); ++l) {
      if (graph.lane(LaneId(l)).lane.number < 0) continue;  // of the optimization
      // The last step has no next one to begin.
      for (size_t s = 1; s + 1 < graph.steps().size(); ++s) {
        if (!graph.steps()[s].measured || !graph.steps()[s + 1].measured) continue;
        EXPECT_GE(periods[s - 1], busy[l][s]) << name << ", lane " << l << ", step " << s;
      }
    }
  }
}

// What the windows go by, looked for from the end of each lane.
TEST(StepWindows, GoByTheLastCallOfEachLaneThatLaunched) {
  for (const char* name : {"launch-bound", "resnet50"}) {
    SCOPED_TRACE(name);
    const Graph graph = Example(name).graph;
    std::vector<std::vector<Edge>> launches(graph.size());  // by call
    for (const Edge& e : graph.edges()) {
      if (e.rule == Rule::kLaunch) launches[e.from.index()].push_back(e);
    }
    const StepMarks marks(graph);
    size_t known = 0;
    for (size_t s = 0; s < graph.steps().size(); ++s) {
      if (marks.launches(s).empty()) continue;  // of a step that does not count
      ++known;
      size_t at = 0;
      for (const GraphLane& lane : graph.lanes()) {
        TaskId t = lane.last;
        while (t.valid() && (graph.task(t).step != s || launches[t.index()].empty())) {
          t = graph.task(t).lane_prev;
        }
        if (!t.valid()) continue;
        ASSERT_LT(at, marks.launches(s).size());
        const StepMarks::Launch& found = marks.launches(s)[at++];
        EXPECT_EQ(found.task, t);
        EXPECT_EQ(found.lag, std::ranges::max(launches[t.index()], {}, &Edge::lag).lag);
      }
      EXPECT_EQ(at, marks.launches(s).size());
    }
    EXPECT_GE(known, 2U);
  }
}

// Marks and calls are found once for all copies, and again where an edit changes them.
TEST(StepWindows, AreTheSameOfCopiesThatShareWhatIsFound) {
  Graph graph = Example("launch-bound").graph;
  const Timeline timeline = Simulate(graph).value();
  const auto lengths = [&](const Graph& of) {
    std::vector<Duration> found;
    for (const StepWindow& w : StepWindows(of, timeline.start, timeline.end)) {
      found.push_back(w.length());
    }
    return found;
  };
  if (graph.wiring() == 0) graph.NameWiring();
  const std::vector<Duration> shared = lengths(graph);
  EXPECT_EQ(lengths(graph), shared);
  Graph edited = graph;
  for (size_t i = 0; i < graph.size();
       ++i) {  // the work of the second and the third step is of one
    if (graph.tasks()[i].step == 2) edited.mutable_task(TaskId(i)).step = 1;
  }
  ASSERT_EQ(edited.wiring(), 0U);
  const std::vector<Duration> longer = lengths(edited);
  EXPECT_NE(longer, shared);
  edited.NameWiring();
  EXPECT_EQ(lengths(edited), longer);
  for (size_t i = 0; i < graph.size(); ++i) {
    edited.mutable_task(TaskId(i)).step = graph.tasks()[i].step;
  }
  EXPECT_EQ(lengths(edited), shared);
}

}  // namespace
}  // namespace daydream
