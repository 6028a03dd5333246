// Eight step times in one pass are the eight step times one by one.
#include "simulator/step_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "graph/build.h"
#include "simulator/draw_eight.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "tests/real_traces.h"
#include "trace/importer.h"

namespace daydream {
namespace {

void ExpectSameSteps(const Graph& graph, uint64_t seed) {
  auto batch = StepBatch::Make(graph);
  ASSERT_TRUE(batch.ok()) << batch.status();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3; ++round) {
    batch->Reset();
    std::vector<Graph> variants(StepBatch::kWidth, graph);
    for (size_t s = 0; s < variants.size(); ++s) {
      for (size_t i = 0; i < graph.size(); ++i) {
        if (round > 0 && random() % 2 == 0) continue;  // some stay as they are
        Task& task = variants[s].mutable_task(TaskId(i));
        double factor = static_cast<double>(random() % 200) / 100;
        task.duration = task.duration.Scaled(factor);
        task.gap = task.gap.Scaled(factor);
        batch->Set(s, TaskId(i), task.duration, task.gap);
      }
    }
    for (int again = 0; again < 2; ++again) {
      auto steps = batch->Run();
      for (size_t s = 0; s < variants.size(); ++s) {
        EXPECT_EQ(steps[s], StepTime(variants[s], Simulate(variants[s]).value())) << "column " << s;
      }
    }
  }
  batch->Reset();
  EXPECT_EQ(batch->Run()[3], StepTime(graph, Simulate(graph).value()));
}

TEST(StepBatch, AgreesWithSimulateOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ExpectSameSteps(RandomGraph(seed, {.tasks = 1 + seed % 80, .lanes = 1 + seed % 5}), seed);
  }
}

TEST(StepBatch, AgreesWithSimulateOnRealTraces) {
  for (const char* name :
       {"gpus/resnet50-bs32.v100-sxm2.json.gz", "gpus/bert-small.h100.json.gz",
        "inference/prefill-b200-eager.json.gz", "training/recsys-a100-rank3of8.json.gz"}) {
    if (!std::filesystem::exists(RealTraceFolder() / name)) GTEST_SKIP() << "no real traces";
    SCOPED_TRACE(name);
    auto built = BuildGraph(ImportFile((RealTraceFolder() / name).string()).value());
    ASSERT_TRUE(built.ok());
    ExpectSameSteps(built->graph, 1);
  }
}

// A copy of `graph` with some other times, set as Graph::structure() wants it.
void RetimeSome(const Graph& graph, std::mt19937_64& random, Graph& copy) {
  for (size_t i = 0; i < graph.size(); ++i) {
    if (random() % 3 != 0) continue;
    const Task& task = graph.task(TaskId(i));
    const double factor = static_cast<double>(random() % 300) / 100;
    copy.SetDuration(TaskId(i), task.duration.Scaled(factor));
    if (random() % 2 == 0) copy.SetGap(TaskId(i), task.gap.Scaled(factor));
    if (random() % 4 == 0) copy.SetDuration(TaskId(i), task.duration.Scaled(factor / 2));
  }
}

bool AreReset(const Graph& graph, StepBatch& batch) {
  const std::span<const int64_t> expected = batch.reset_sums();
  for (size_t i = 0; i < graph.size(); ++i) {
    const StepBatch::Sums sums = batch.sums(TaskId(i));
    const StepBatch::SumsOfTask at = batch.places(TaskId(i));
    for (size_t s = 0; s < StepBatch::kWidth; ++s) {
      if (sums.duration[s] != expected[at.duration] || sums.gap[s] != expected[at.gap])
        return false;
    }
  }
  return true;
}

// Every way to have a retimed copy played is its replay, and the graph itself is played afterwards.
TEST(StepBatch, FollowsRetimedCopies) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph graph = RandomGraph(seed, {.tasks = 1 + seed % 80, .lanes = 1 + seed % 5});
    auto first = StepBatch::Make(graph);
    ASSERT_TRUE(first.ok()) << first.status();
    StepBatch batch = first->Another();
    const Duration recorded = StepTime(graph, Simulate(graph).value());
    std::mt19937_64 random(seed);
    Graph copy = graph;
    copy.NameStructure(7);
    for (int round = 0; round < 3; ++round) {
      copy.UndoRetimed(graph);
      RetimeSome(graph, random, copy);
      ASSERT_EQ(copy.structure(), 7U);
      const Timeline timeline = Simulate(copy).value();
      const Duration step = StepTime(copy, timeline);
      EXPECT_EQ(first->StepOf(copy), step);
      EXPECT_EQ(first->StepWith({}), recorded);
      batch.Follow(copy);
      EXPECT_EQ(batch.StepWith({}), step);
      EXPECT_TRUE(std::ranges::equal(batch.periods(), StepPeriods(copy, timeline)));
      EXPECT_EQ(batch.Run()[5], step);
      EXPECT_EQ(batch.StepOf(graph), recorded);
      std::vector<StepBatch::Longer> longer;
      for (size_t i = 0; i < graph.size(); i += 3) {
        longer.push_back({TaskId(i), Duration::Ns(static_cast<int64_t>(i)), Duration::Ns(5)});
      }
      const Duration with = batch.StepWith(longer);
      std::vector<int64_t> all(batch.reset_sums().size()), but_one = all;
      for (const StepBatch::Longer& l : longer) first->AddTo(all, l);
      for (const StepBatch::Longer& l : std::span(longer).subspan(1)) batch.AddTo(but_one, l);
      EXPECT_EQ(batch.StepWith({}, all), with);
      EXPECT_EQ(batch.StepWith(std::span(longer).first(1), but_one), with);
    }
    copy.UndoRetimed(graph);
    batch.Follow(copy);
    EXPECT_EQ(batch.StepWith({}), recorded);
    EXPECT_EQ(batch.Run()[0], recorded);
  }
}

// Whoever asked for sums, and for however many of them.
TEST(StepBatch, ResetBringsBackWhatWasWritten) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph graph = RandomGraph(seed, {.tasks = 40 + seed, .lanes = 1 + seed % 5});
    auto batch = StepBatch::Make(graph);
    ASSERT_TRUE(batch.ok()) << batch.status();
    const Duration recorded = StepTime(graph, Simulate(graph).value());
    std::mt19937_64 random(seed);
    for (size_t written : {1, 3, 40, 2}) {
      Graph longer = graph;
      for (size_t i = 0; i < written; ++i) {
        const TaskId t(random() % graph.size());
        const StepBatch::Sums sums = batch->sums(t);
        for (size_t s = 0; s < StepBatch::kWidth; ++s) sums.duration[s] += 700, sums.gap[s] += 30;
        longer.mutable_task(t).duration += Duration::Ns(700);
        longer.mutable_task(t).gap += Duration::Ns(30);
      }
      EXPECT_EQ(batch->Run()[6], StepTime(longer, Simulate(longer).value()));
      batch->Reset();
      for (Duration step : batch->Run()) EXPECT_EQ(step, recorded) << written;
      EXPECT_TRUE(AreReset(graph, *batch)) << written;
    }
  }
}

TEST(StepBatch, TellsWhatItCannotPlay) {
  const Graph graph = RandomGraph(3, {.tasks = 30, .lanes = 3});
  auto batch = StepBatch::Make(graph);
  ASSERT_TRUE(batch.ok()) << batch.status();
  Graph other = graph;
  other.mutable_task(TaskId(4)).removed = !graph.task(TaskId(4)).removed;
  EXPECT_FALSE(batch->StepOf(other).has_value());
  other = graph;
  ASSERT_FALSE(other.edges().empty());
  other.mutable_edges()[0].lag += Duration::Us(1);
  EXPECT_FALSE(batch->StepOf(other).has_value());
  other = graph;
  other.AddEdge({.from = TaskId(0), .to = TaskId(29)});
  EXPECT_FALSE(batch->StepOf(other).has_value());
  // What comes later on the lane may then end before what comes first: a sum does not tell.
  other = graph;
  const auto apart = std::ranges::find_if(
      graph.tasks(), [](const Task& t) { return !t.removed && t.gap >= Duration{}; });
  ASSERT_NE(apart, graph.tasks().end());
  other.SetGap(TaskId(static_cast<size_t>(apart - graph.tasks().begin())), Duration::Ns(-1));
  EXPECT_FALSE(batch->StepOf(other).has_value());
}

TEST(Graph, KeepsItsStructureWhileOnlyTimesAreSet) {
  const Graph graph = RandomGraph(3, {.tasks = 30, .lanes = 3});
  Graph copy = graph;
  copy.NameStructure(7);
  copy.SetDuration(TaskId(2), Duration::Us(5));
  EXPECT_EQ(Graph(copy).structure(), 7U);
  copy.UndoRetimed(graph);
  EXPECT_EQ(copy.task(TaskId(2)).duration, graph.task(TaskId(2)).duration);
  copy.mutable_task(TaskId(2)).earliest = Instant::AtNs(1);
  EXPECT_EQ(copy.structure(), 0U);
  copy.NameStructure(8);
  copy.AddEdge({.from = TaskId(0), .to = TaskId(29)});
  EXPECT_EQ(copy.structure(), 0U);
}

std::vector<Choice> RandomChoices(size_t slots, std::mt19937_64& random) {
  std::vector<Choice> choices(slots);
  for (Choice& c : choices) {
    for (int64_t& place : c) place = static_cast<int64_t>(random() % 8);
  }
  return choices;
}

TEST(DrawEight, AddsWhatEachScenarioDraws) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<int64_t> base(10), sums(8 * 8, -1), expected(8 * 8);
    for (int64_t& v : base) v = static_cast<int64_t>(random() % 1000);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = base[2 + i / 8];
    const std::vector<Choice> choices = RandomChoices(3, random);
    std::vector<DrawnSum> drawn;
    std::vector<Alternatives> of;
    for (uint32_t sum = 0; sum < 10; ++sum) {
      for (size_t i = random() % 4; i > 0; --i) {
        drawn.push_back({sum, static_cast<uint32_t>(random() % 3)});
        for (int64_t& v : of.emplace_back()) v = static_cast<int64_t>(random() % 50);
        for (size_t s = 0; s < 8 && sum >= 2; ++s) {
          expected[(sum - 2) * 8 + s] +=
              of.back()[static_cast<size_t>(choices[drawn.back().slot][s])];
        }
      }
    }
    DrawnSums left{drawn, of};
    left.Take(2);
    DrawEight(std::span(base).subspan(2), 2, left, choices, sums.data());
    EXPECT_EQ(sums, expected);
  }
}

// However many groups of eight there are, and whichever graph of its structure they go out from.
TEST(StepBatch, PlaysWhatScenariosDraw) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Graph recorded = RandomGraph(seed, {.tasks = 40 + 7 * seed, .lanes = 1 + seed % 5});
    Graph graph = recorded;
    graph.NameStructure(1);
    for (int i = 0; i < 5; ++i) graph.SetDuration(TaskId(random() % graph.size()), Duration::Us(2));
    auto batch = StepBatch::Make(recorded);
    ASSERT_TRUE(batch.ok()) << batch.status();
    batch->Follow(graph);
    struct Drawn {
      TaskId task;
      uint32_t slot, sum;
      Alternatives of;
    };
    std::vector<Drawn> all;
    for (size_t i = 0; i < graph.size(); i += 1 + random() % 3) {
      if (graph.tasks()[i].removed) continue;
      Drawn& d = all.emplace_back(TaskId(i), random() % 3, batch->places(TaskId(i)).duration);
      for (int64_t& v : d.of) v = static_cast<int64_t>(random() % 5000);
    }
    std::ranges::stable_sort(all, {}, &Drawn::sum);
    std::vector<DrawnSum> drawn;
    std::vector<Alternatives> of;
    for (const Drawn& d : all) drawn.push_back({d.sum, d.slot}), of.push_back(d.of);
    std::vector<std::vector<Choice>> groups;
    for (uint64_t g = 0; g < 1 + seed % 19; ++g) groups.push_back(RandomChoices(3, random));
    const std::vector<Duration> steps = batch->RunDrawn({drawn, of}, groups);
    ASSERT_EQ(steps.size(), groups.size() * StepBatch::kWidth);
    for (size_t i = 0; i < steps.size(); i += 3) {
      Graph longer = graph;
      for (const Drawn& d : all) {
        const auto choice = static_cast<size_t>(groups[i / 8][d.slot][i % 8]);
        longer.mutable_task(d.task).duration += Duration::Ns(d.of[choice]);
      }
      EXPECT_EQ(steps[i], StepTime(longer, Simulate(longer).value())) << i;
    }
    EXPECT_EQ(batch->Run()[5], StepTime(graph, Simulate(graph).value()));
  }
}

TEST(StepBatch, RefusesLanesThatMayReorder) {
  EXPECT_FALSE(StepBatch::Make(RandomGraph(1, {.tasks = 20, .priority_lanes = 1})).ok());
}

}  // namespace
}  // namespace daydream
