// Launches captured, waits taken away, kernels spread over streams: the parts that golden cases do
// not show, and a slow second opinion on the assignment of streams.
#include <algorithm>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"
#include "transforms/analysis/shared_schedule.h"
#include "transforms/analysis/stream_assignment.h"
#include "transforms/core/transform.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

using Matrix = std::vector<std::vector<bool>>;

Matrix Closure(const WorkDag& dag) {
  Matrix reaches(dag.size, std::vector<bool>(dag.size));
  for (const auto& [a, b] : dag.edges) reaches[a][b] = true;
  for (uint32_t k = 0; k < dag.size; ++k) {
    for (uint32_t i = 0; i < dag.size; ++i) {
      for (uint32_t j = 0; j < dag.size; ++j) {
        if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
      }
    }
  }
  return reaches;
}

// Edges that follow from no two others, by their definition.
std::vector<std::pair<uint32_t, uint32_t>> NeededByDefinition(const WorkDag& dag) {
  const Matrix reaches = Closure(dag);
  std::vector<std::pair<uint32_t, uint32_t>> needed;
  for (uint32_t i = 0; i < dag.size; ++i) {
    for (uint32_t j = i + 1; j < dag.size; ++j) {
      bool direct = reaches[i][j];
      for (uint32_t k = i + 1; k < j && direct; ++k) direct = !(reaches[i][k] && reaches[k][j]);
      if (direct) needed.push_back({i, j});
    }
  }
  return needed;
}

// The fewest synchronizations of all assignments of work to streams in which independent work is on
// different streams: tries every one.
size_t FewestByTrying(const WorkDag& dag) {
  const Matrix reaches = Closure(dag);
  const auto needed = NeededByDefinition(dag);
  size_t fewest = needed.size();
  std::vector<uint32_t> stream(dag.size);
  std::function<void(uint32_t, uint32_t)> place = [&](uint32_t i, uint32_t used) {
    if (i == dag.size) {
      fewest = std::min<size_t>(
          fewest, static_cast<size_t>(std::count_if(needed.begin(), needed.end(), [&](auto& e) {
            return stream[e.first] != stream[e.second];
          })));
      return;
    }
    for (uint32_t s = 0; s <= used; ++s) {
      bool apart = true;
      for (uint32_t j = 0; j < i && apart; ++j) apart = stream[j] != s || reaches[j][i];
      if (!apart) continue;
      stream[i] = s;
      place(i + 1, std::max(used, s + 1));
    }
  };
  place(0, 0);
  return fewest;
}

WorkDag RandomDag(std::mt19937& random, uint32_t size) {
  WorkDag dag{.size = size};
  std::uniform_real_distribution<double> share(0, 1);
  const double density = share(random);
  for (uint32_t j = 1; j < size; ++j) {
    for (uint32_t i = 0; i < j; ++i) {
      if (share(random) < density) dag.edges.push_back({i, j});
    }
  }
  return dag;
}

class SmallDags : public testing::TestWithParam<uint32_t> {
 protected:
  std::mt19937 random_{GetParam()};
  WorkDag dag_ = RandomDag(random_, 1 + GetParam() % 7);
  StreamAssignment assignment_ = AssignChains(dag_);
};

TEST_P(SmallDags, OnlyNeededEdgesAreLeft) {
  EXPECT_EQ(assignment_.needed, NeededByDefinition(dag_)) << "seed " << GetParam();
}

TEST_P(SmallDags, IndependentWorkIsOnDifferentChains) {
  const Matrix reaches = Closure(dag_);
  for (uint32_t i = 0; i < dag_.size; ++i) {
    for (uint32_t j = i + 1; j < dag_.size; ++j) {
      if (assignment_.chain[i] == assignment_.chain[j]) {
        EXPECT_TRUE(reaches[i][j]) << i << " and " << j << ", seed " << GetParam();
      }
    }
  }
}

TEST_P(SmallDags, NoAssignmentNeedsFewerSynchronizations) {
  size_t syncs = 0;
  for (const auto& [a, b] : assignment_.needed) {
    syncs += assignment_.chain[a] != assignment_.chain[b] ? 1 : 0;
  }
  EXPECT_EQ(syncs, FewestByTrying(dag_)) << "seed " << GetParam();
}

TEST_P(SmallDags, FoldedChainsUseNoMoreStreamsThanAllowed) {
  const std::vector<int64_t> cost(dag_.size, 1);
  for (uint32_t limit : {1u, 2u, 3u}) {
    for (uint32_t s : FoldChains(dag_, assignment_, cost, limit)) EXPECT_LT(s, limit);
  }
  // Without a limit independent work stays apart.
  const Matrix reaches = Closure(dag_);
  const std::vector<uint32_t> stream = FoldChains(dag_, assignment_, cost, 0);
  for (uint32_t i = 0; i < dag_.size; ++i) {
    for (uint32_t j = i + 1; j < dag_.size; ++j) {
      EXPECT_TRUE(stream[i] != stream[j] || reaches[i][j]) << "seed " << GetParam();
    }
  }
}

TEST_P(SmallDags, SharesThatRunTogetherDoNoMoreThanTheGpuCan) {
  std::uniform_int_distribution<int64_t> time(0, 1000);
  std::uniform_real_distribution<double> share(0, 1);
  const std::vector<uint32_t> stream =
      FoldChains(dag_, assignment_, std::vector<int64_t>(dag_.size, 1), 3);
  std::vector<SharedWork> work(dag_.size);
  double held = 0;
  for (uint32_t i = 0; i < dag_.size; ++i) {
    work[i] = {.duration = Duration::Us(1 + time(random_)),
               .share = share(random_),
               .ready = Duration::Us(time(random_)),
               .stream = stream[i]};
    held += work[i].duration.us() * work[i].share;
  }
  for (const auto& [a, b] : dag_.edges) work[b].needs.push_back(a);
  const std::vector<SharedTime> times = ScheduleShared(work, Duration::Us(2));
  double first = 1e300, last = 0;
  for (uint32_t i = 0; i < dag_.size; ++i) {
    EXPECT_GE(times[i].start, work[i].ready);
    EXPECT_GE((times[i].end - times[i].start).ns + 1, work[i].duration.ns);
    first = std::min(first, static_cast<double>(times[i].start.ns) * 1e-3);
    last = std::max(last, times[i].end.us());
    for (uint32_t n : work[i].needs) EXPECT_GE(times[i].start, times[n].end);
    for (uint32_t j = 0; j < i; ++j) {
      EXPECT_TRUE(stream[i] != stream[j] || times[i].start >= times[j].end);
    }
  }
  // The multiprocessors cannot be held for longer than they were there.
  EXPECT_LE(held, last - first + 0.01) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Random, SmallDags, testing::Range(0u, 200u));

TEST(Streams, ADiamondNeedsTwoStreamsAndTwoSynchronizations) {
  const WorkDag dag{.size = 4, .edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}}};
  const StreamAssignment assignment = AssignChains(dag);
  EXPECT_EQ(assignment.needed.size(), 4u);  // 0 -> 3 follows
  EXPECT_EQ(assignment.chains, 2u);
}

TEST(SmShares, AreBlocksAgainstThoseThatFit) {
  const DeviceSpec& a100 = *FindDeviceSpec("A100-SXM4-40GB");
  // 8 blocks of 256 threads fit on each of 108: 54 blocks are 54 / 864.
  KernelDetail kernel{.grid = {54, 1, 1}, .block = {256, 1, 1}};
  EXPECT_DOUBLE_EQ(*SmShare(a100, kernel), 54.0 / 864);
  kernel.registers_per_thread = 128;  // 2 blocks of 32768 registers
  EXPECT_DOUBLE_EQ(*SmShare(a100, kernel), 0.25);
  kernel.shared_memory_bytes = 100000;  // 1 block
  EXPECT_DOUBLE_EQ(*SmShare(a100, kernel), 0.5);
  kernel.grid = {1000, 1, 1};
  EXPECT_DOUBLE_EQ(*SmShare(a100, kernel), 1);
}

TEST(SmShares, AreNotKnownWithoutLaunchShapeOrGpu) {
  const DeviceSpec& a100 = *FindDeviceSpec("A100-SXM4-40GB");
  EXPECT_EQ(SmShare(a100, {.block = {32, 1, 1}}), std::nullopt);
  EXPECT_EQ(SmShare(a100, {.grid = {1, 1, 1}}), std::nullopt);
  EXPECT_EQ(SmShare(DeviceSpec{}, {.grid = {1, 1, 1}, .block = {32, 1, 1}}), std::nullopt);
}

TEST(SmShares, TwoThatHoldThreeQuartersEachTakeHalfAsLongAgain) {
  const std::vector<SharedWork> work = {{.duration = Duration::Us(100), .share = 0.75, .stream = 0},
                                        {.duration = Duration::Us(50), .share = 0.75, .stream = 1}};
  const std::vector<SharedTime> times = ScheduleShared(work, {});
  // Together until the short one has done its 50 us at 2/3 of the speed; then the other one's last
  // 50 us alone.
  EXPECT_EQ(times[1].end, Duration::Us(75));
  EXPECT_EQ(times[0].end, Duration::Us(125));
}

Applied ApplyTo(std::string_view text, std::string_view spec) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  if (!graph.ok()) return {};
  auto scenario = ParseScenario(spec);
  EXPECT_TRUE(scenario.ok()) << Message(scenario.status());
  if (!scenario.ok()) return {};
  auto applied = Apply(scenario->front(), *graph);
  EXPECT_TRUE(applied.ok()) << Message(applied.status());
  return applied.ok() ? *std::move(applied) : Applied{};
}

constexpr std::string_view kRead = R"text(
lane cpu0   thread
lane gpu0.7 stream
layer head "head"
scope main  frame cpu0 "train.py(88): train"
scope item  op cpu0 "aten::item" in=main
scope data  op cpu0 "aten::_local_scalar_dense" in=item
c0 cpu0   call   5us "cudaLaunchKernel" at 0us
k0 gpu0.7 kernel 4us "a" at 5us after c0 launch
c1 cpu0   call   5us "cudaLaunchKernel" at 5us
k1 gpu0.7 kernel 4us "b" at 10us after c1 launch
w0 cpu0   call   7us "cudaStreamSynchronize" scope data layer head at 10us until k1 hostwait +1us
c2 cpu0   call   5us "cudaLaunchKernel" at 17us
k2 gpu0.7 kernel 4us "c" at 22us after c2 launch
c3 cpu0   call   5us "cudaLaunchKernel" at 22us
k3 gpu0.7 kernel 4us "d" at 27us after c3 launch
)text";

TEST(Graphs, WhatPreventsCaptureIsNamedWithPlaceLayerAndTime) {
  EXPECT_THAT(
      ApplyTo(kRead, "graphs(min_nodes=2)").changes.conditions,
      Contains("calls that wait for the GPU split the step into several graphs: once a step at "
               "aten::item at train.py(88) in head, reads a value (7 us of host time a step)"));
}

TEST(Graphs, WhatHasToLeaveAStepIsNamed) {
  EXPECT_THAT(ApplyTo(kRead, "graphs(scope=step, min_nodes=2)").changes.conditions,
              Contains(HasSubstr("have to move behind the graph")));
}

TEST(Graphs, StepsThatLaunchOtherSizesAreSeen) {
  constexpr std::string_view kSteps = R"text(
lane cpu0   thread
lane gpu0.7 stream
step "0"
step "1"
c0 cpu0   call   5us "cudaLaunchKernel" at 0us step=0
k0 gpu0.7 kernel 4us "a" at 5us grid=8,1,1 block=32,1,1 step=0 after c0 launch
c1 cpu0   call   5us "cudaLaunchKernel" at 5us step=0
k1 gpu0.7 kernel 4us "b" at 10us grid=8,1,1 block=32,1,1 step=0 after c1 launch
c2 cpu0   call   5us "cudaLaunchKernel" at 10us step=1
k2 gpu0.7 kernel 4us "a" at 15us grid=8,1,1 block=32,1,1 step=1 after c2 launch
c3 cpu0   call   5us "cudaLaunchKernel" at 15us step=1
k3 gpu0.7 kernel 4us "b" at 20us grid=9,1,1 block=32,1,1 step=1 after c3 launch
)text";
  EXPECT_THAT(ApplyTo(kSteps, "graphs(min_nodes=2)").changes.warnings,
              Contains(HasSubstr("first b: what")));
}

TEST(NoSync, WhatGoesAndWhatStaysIsNamed) {
  std::string text(kRead);
  text +=
      "scope nz op cpu0 \"aten::nonzero\"\n"
      "s1 cpu0 call 3us \"cudaStreamSynchronize\" scope nz at 27us until k3 hostwait\n";
  const Applied applied = ApplyTo(text, "no-sync");
  EXPECT_THAT(applied.changes.conditions,
              Contains(HasSubstr("once a step at aten::item at train.py(88)")));
  EXPECT_THAT(applied.changes.notes,
              Contains(HasSubstr("once a step at aten::nonzero, its value steers the program")));
}

constexpr std::string_view kBranches = R"text(
device 0 "NVIDIA A100-PCIE-40GB" memory=42505273344 capability=8.0 multiprocessors=108
lane cpu0   thread
lane gpu0.7 stream
scope x  op cpu0 "aten::relu" shapes="[[64, 128]]" types="[\"float\"]"
scope a  op cpu0 "aten::mm" shapes="[[64, 128], [128, 300]]" types="[\"float\", \"float\"]"
scope b  op cpu0 "aten::mm" shapes="[[64, 128], [128, 500]]" types="[\"float\", \"float\"]"
c0 cpu0   call   5us "cudaLaunchKernel" at 0us scope x
k0 gpu0.7 kernel 99us "elementwise_kernel<relu>" at 5us scope x after c0 launch
c1 cpu0   call   5us "cudaLaunchKernel" at 5us scope a
k1 gpu0.7 kernel 99us "ampere_sgemm_32x32_nn" at 104us scope a after c1 launch
c2 cpu0   call   5us "cudaLaunchKernel" at 10us scope b
k2 gpu0.7 kernel 99us "ampere_sgemm_32x32_nn" at 203us scope b after c2 launch
)text";

TEST(MultiStream, WithoutLaunchShapesTheAnswerIsALimit) {
  const Applied applied = ApplyTo(kBranches, "multi-stream");
  EXPECT_TRUE(applied.bound);
  EXPECT_THAT(applied.changes.warnings, Contains(HasSubstr("upper bound")));
}

TEST(MultiStream, WithLaunchShapesItIsAPrediction) {
  std::string text(kBranches);
  for (size_t at = text.find(" scope", text.find("k0 gpu")); at != std::string::npos;
       at = text.find(" scope", at + 40)) {
    if (text.rfind("kernel", at) > text.rfind('\n', at)) {
      text.insert(at, " grid=54,1,1 block=1024,1,1");
    }
  }
  const Applied applied = ApplyTo(text, "multi-stream");
  EXPECT_FALSE(applied.bound);
  EXPECT_THAT(applied.changes.warnings, IsEmpty());
}

// What comes out can be played: nothing waits for itself. Without scope=step, whose waits move
// behind work that, in a random graph, host work after them may hold up by any edge.
class OnRandomGraphs : public testing::TestWithParam<std::string_view> {};

TEST_P(OnRandomGraphs, NothingWaitsForItself) {
  const auto scenario = ParseScenario(GetParam());
  ASSERT_TRUE(scenario.ok()) << Message(scenario.status());
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Graph graph = RandomGraph(seed, {.tasks = 2 + seed, .negative_lags = false});
    const auto before = Simulate(graph);
    if (!before.ok()) continue;
    // As recorded: what has to come first came first.
    for (size_t i = 0; i < graph.size(); ++i) {
      graph.mutable_task(TaskId(i)).recorded_start = before->start[i];
    }
    for (const Application& application : *scenario) {
      auto applied = Apply(application, graph);
      const std::string code = applied.ok() ? "E0601" : DiagnosticOf(applied.status()).code;
      ASSERT_EQ(code, "E0601") << "seed " << seed << ": " << Message(applied.status());
    }
    auto timeline = Simulate(graph);
    ASSERT_TRUE(timeline.ok()) << "seed " << seed << ": " << Message(timeline.status());
  }
}

INSTANTIATE_TEST_SUITE_P(Launches, OnRandomGraphs,
                         testing::Values("graphs(min_nodes=2)", "graphs(scope=layer)", "aot",
                                         "no-sync", "multi-stream(0)",
                                         "aot, multi-stream(0), no-sync",
                                         "multi-stream(0), no-sync, aot"));

}  // namespace
}  // namespace daydream
