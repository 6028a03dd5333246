// Work that a person would look at first: operators that a busy host holds up, and steps that carry
// data from the host.
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph/text.h"
#include "report/questions/copy_findings.h"
#include "report/questions/launch_findings.h"
#include "report/questions/limit_findings.h"
#include "report/questions/op_stalls.h"
#include "report/questions/queue_findings.h"
#include "tests/graph/trace_sketch.h"

namespace daydream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

BuiltGraph Built(TraceSketch& s) {
  auto built = BuildGraph(s.Build());
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// A host that runs 900 kernels of 50 us ahead, and then takes `usual` to `most` us for each launch.
std::optional<Finding> QueueOf(double usual, double most, Duration step = Duration::Us(100'000)) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  std::mt19937 random(1);
  std::uniform_real_distribution<double> takes(usual, most);
  double host = 0;
  for (int i = 0; i < 2000; ++i) {
    const double call = i < 900 ? 5 : takes(random);
    s.Launch(cpu, gpu, "kernel", host, call, 50.0 * i + 10, 49);
    host += call;
  }
  const Graph graph = Built(s).graph;
  return FindingOfQueues(graph, std::vector<bool>(graph.steps().size() + 1, true), 1, step);
}

TEST(QueueFindings, LaunchesThatTakeLongBehindManyOperationsForNoKnownReason) {
  const auto found = QueueOf(40, 60);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->kind, FindingKind::kQueue);
  EXPECT_THAT(found->text, HasSubstr("launches, 4"));
  EXPECT_NEAR(found->time.ms(), 1100 * 0.045, 2);
}

TEST(QueueFindings, NotShortOnesNorThoseThatTheDepthExplains) {
  EXPECT_FALSE(QueueOf(5, 6).has_value());
  EXPECT_FALSE(QueueOf(50, 50).has_value()) << "all return as the 900th before them starts";
  EXPECT_FALSE(QueueOf(40, 60, Duration::Us(2'000'000)).has_value()) << "a twentieth is little";
}

// Ten rounds of three operators, a millisecond each round, that take `usual` us; of each name the
// n-th of `late` takes 40 ms more.
std::vector<Finding> StallsOf(const std::vector<std::string>& names, double usual,
                              const std::set<int>& late) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  double now = 0;
  for (int round = 0; round < 10; ++round) {
    for (const std::string& name : names) {
      const double time = usual + (late.contains(round) ? 40000 : 0);
      s.Op(cpu, name, now, time);
      now += time + 10;
    }
    s.Launch(cpu, gpu, "kernel", now, 10, now + 20, 50);
    now += 1000;
  }
  return FindingsOfOpStalls(Built(s).graph);
}

TEST(OpStalls, OperatorsThatTakeFarLongerThanTheirNameDoes) {
  const std::vector<std::string> names = {"aten::view", "aten::empty", "aten::expand"};
  const auto found = StallsOf(names, 5, {3, 7});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kOpStalls);
  EXPECT_EQ(found[0].about, About::kStep);
  EXPECT_EQ(found[0].time, Duration::Ns(6 * 40'000'000));
  EXPECT_THAT(found[0].text, HasSubstr("6 operators take 240.0 ms of the 249.5 ms recorded"));
  EXPECT_THAT(found[0].where, HasSubstr("40.0 ms, usually 5.0 us"));
}

TEST(OpStalls, NotThoseThatAlwaysTakeLongNorFewNorWaits) {
  const std::vector<std::string> names = {"aten::view", "aten::empty", "aten::expand"};
  EXPECT_THAT(StallsOf(names, 5, {}), IsEmpty());
  EXPECT_THAT(StallsOf(names, 5, {3}), IsEmpty()) << "three are few";
  EXPECT_THAT(StallsOf(names, 20000, {3, 7}), IsEmpty()) << "three times as long";
  EXPECT_THAT(StallsOf({"aten::view"}, 5, {1, 3, 5, 7, 9}), IsEmpty()) << "one name has a reason";
  EXPECT_THAT(StallsOf({"c10d::broadcast_", "gloo:all_gather", "record_param_comms"}, 5, {3, 7}),
              IsEmpty());
}

// One step of 1 ms with a copy of 700 us, or of `us`.
std::vector<Finding> CopiesOf(Memory from, Memory to, double us) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  s.Call(cpu, "cudaMemcpyAsync", 0, 10, 1);
  s.Copy(gpu, from, to, 7'000'000, 20, us, 1);
  s.Launch(cpu, gpu, "kernel", 800, 10, 900, 100);
  return FindingsOfCopies(Built(s).graph, {true}, 1, Duration::Ns(1'000'000));
}

TEST(Copies, ThatTakeHalfOfAStepAreNamedWithTheirRate) {
  const auto found = CopiesOf(Memory::kPinned, Memory::kDevice, 700);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kCopies);
  EXPECT_EQ(found[0].about, About::kProgram);
  EXPECT_THAT(found[0].text,
              HasSubstr("700 us of the step copy from the host to the GPU: 7.0 MB in one copy, at "
                        "10 GB/s"));
  EXPECT_THAT(found[0].fix, Not(HasSubstr("pinned"))) << "it is pinned already";
  EXPECT_THAT(CopiesOf(Memory::kPageable, Memory::kDevice, 700)[0].fix, HasSubstr("from pinned"));
  EXPECT_EQ(CopiesOf(Memory::kPageable, Memory::kDevice, 700).size(), 1u);
  EXPECT_THAT(CopiesOf(Memory::kPinned, Memory::kDevice, 400), IsEmpty());
  EXPECT_THAT(CopiesOf(Memory::kDevice, Memory::kPinned, 700), IsEmpty());
  EXPECT_THAT(CopiesOf(Memory::kDevice, Memory::kDevice, 700), IsEmpty());
}

// Six kernels and four fills, of which none or one was recorded.
std::vector<Finding> FillsOf(bool one_recorded) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 6; ++i) s.Launch(cpu, gpu, "kernel", 100 * i, 10, 100 * i + 20, 50);
  for (uint32_t i = 0; i < 4; ++i) s.Call(cpu, "cudaMemsetAsync", 1000 + 100 * i, 10, i + 1);
  if (one_recorded) s.Memset(gpu, 1020, 5, 1);
  return FindingsOfLaunches(Built(s).graph, {true}, 1, Duration::Ns(1'500'000));
}

// Twenty launches, of which one at `place` left no kernel.
std::vector<Finding> HoleAt(int place) {
  TraceSketch s;
  const LaneId cpu = s.Thread(), gpu = s.Stream();
  for (int i = 0; i < 20; ++i) {
    if (i == place) {
      s.Call(cpu, "cudaLaunchKernel", 100 * i, 10, 999);
    } else {
      s.Launch(cpu, gpu, "kernel", 100 * i, 10, 100 * i + 20, 50);
    }
  }
  return FindingsOfLaunches(Built(s).graph, {true}, 1, Duration::Ns(2'000'000));
}

TEST(Launches, OneKernelThatWasLostIsToldUnlessTheWindowEndsThere) {
  const auto found = HoleAt(7);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kPartialGpu);
  EXPECT_EQ(found[0].about, About::kPredictions);
  EXPECT_THAT(found[0].text, HasSubstr("1 of 20 launches have no record of their GPU work"));
  EXPECT_THAT(HoleAt(19), IsEmpty()) << "it may run behind the window";
  EXPECT_THAT(HoleAt(-1), IsEmpty());
}

// A product of 1024 x 1024 x 1024 is 2.1 GFLOP; no A100 does it in less than 6.9 us (312 TFLOPS).
std::vector<Finding> ProductIn(double us) {
  auto graph = ParseGraph(
      fmt::format("device 0 \"NVIDIA A100-SXM4-40GB\"\n"
                  "lane cpu0 thread\nlane gpu0.7 stream device=0\n"
                  "scope mm op cpu0 \"aten::mm\" shapes=\"[[1024, 1024], [1024, 1024]]\"\n"
                  "c0 cpu0 call 5us \"cudaLaunchKernel\" scope mm\n"
                  "k0 gpu0.7 kernel {}us \"ampere_sgemm_128x64_nn\" scope mm after c0 launch\n",
                  us));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return FindingsOfLimits(*graph);
}

TEST(Limits, ShapesThatTheGpuCannotHaveDoneInThatTime) {
  const auto found = ProductIn(5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kTooFast);
  EXPECT_THAT(found[0].text, HasSubstr("1 kernels, 100 % of the GPU time"));
  EXPECT_THAT(ProductIn(200), IsEmpty());
}

// A copy of 12 MB in a millisecond, 12 GB/s, beside one of `mb` in another.
std::vector<Finding> CopyOf(std::string_view device, std::string_view from_to, double mb) {
  auto graph =
      ParseGraph(fmt::format("device 0 \"{0}\"\nlane gpu0.7 stream device=0\n"
                             "m0 gpu0.7 memcpy 1000us \"Memcpy\" bytes=12000000 {1}\n"
                             "m1 gpu0.7 memcpy 1000us \"Memcpy\" bytes={2:.0f} {1}\n",
                             device, from_to, mb * 1e6));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return FindingsOfLimits(*graph);
}

TEST(Limits, CopiesOfMoreBytesThanTheLinkOrTheMemoryMoves) {
  const std::string_view a100 = "NVIDIA A100-SXM4-40GB", jetson = "Orin";
  const std::string_view h2d = "from=pinned to=device", d2h = "from=device to=pageable";
  const std::string_view d2d = "from=device to=device";
  const auto found = CopyOf(a100, h2d, 12000);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kTooFast);
  EXPECT_THAT(found[0].text, HasSubstr("50 % of the time of all (1) move more bytes"));
  EXPECT_THAT(found[0].text, HasSubstr("11988 GB/s where its link or memory reaches 32"));
  EXPECT_EQ(CopyOf(a100, d2h, 50).size(), 1u);
  EXPECT_EQ(CopyOf(a100, d2d, 2400).size(), 1u);
  EXPECT_THAT(CopyOf(a100, h2d, 30), IsEmpty());
  EXPECT_THAT(CopyOf(a100, d2d, 1400), IsEmpty());
  EXPECT_THAT(CopyOf(a100, "from=array to=device", 12000), IsEmpty()) << "of unknown length";
  EXPECT_THAT(CopyOf("Tesla V100-SXM2-32GB", h2d, 70), IsEmpty()) << "POWER9 has NVLink";
  EXPECT_THAT(CopyOf(jetson, h2d, 100), IsEmpty()) << "nothing crosses a link";
  EXPECT_THAT(CopyOf("a GPU of 2040", h2d, 12000), IsEmpty());
}

TEST(Launches, FillsThatNoRecorderHasAreNotMissing) {
  EXPECT_THAT(FillsOf(false), IsEmpty());
  const auto found = FillsOf(true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text, HasSubstr("3 of 10 launches have no record"));
}

}  // namespace
}  // namespace daydream
