#include "graph/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "graph/text_words.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "tests/graph/random_graph.h"

namespace daydream {
namespace {

using testing::HasSubstr;

// Everything that the form can say.
constexpr char kAll[] =
    R"(device 0 "NVIDIA V100" memory=17179869184 capability=7.0 multiprocessors=80)"
    R"( warp=32 threads=2048 registers=65536 shared=98304
lane cpu0 thread rank=1 process=12 number=34 name="python \"main\""
lane gpu0.7 stream queue=1022
lane copies channel priority device=3
step "ProfilerStep#1" unmeasured
step "ProfilerStep#2" period 1500us
layer L0 "layer1"
layer L1 "layer1.0.conv1" in=L0
collective c0 "allreduce" dtype="Float" group="default" in=1024 out=2048 size=8
scope s0 annotation cpu0 "ProfilerStep#1" begin=1us end=90us
scope s1 op cpu0 "aten::conv2d" in=s0 begin=2us end=80us shapes="[[32, 3]]")"
    R"( types="[\"float\"]" sequence=7 forward=1 collective=c0
t0 cpu0 call 5us gap 1us "cudaLaunchKernel" at 2us step=1 phase forward layer L1 scope s1
t1 gpu0.7 kernel 40us gap -20ns "sgemm" grid=8,4,1 block=256,1,1 registers=64 shared=1024)"
    R"( node=9 after t0 launch +2us
t2 gpu0.7 memcpy 1.25us "Memcpy HtoD" overlaps earliest 3us bytes=4096 from=pinned)"
    R"( to=device after t0:start -1ns
t3 copies collective 30us "nccl" removed priority=-2 phase comm collective=c0)"
    R"( transfer=12us after t1 eventwait
t4 cpu0 wait "cudaDeviceSynchronize" until t1 hostwait -3us until t2:start handoff +7ns
t5 cpu0 host 2us "" behind t0 after t3 queue after t3 collective
t6 cpu0 data 2s "tab\x09" behind nothing
)";

TEST(Text, SaysEverythingAboutAGraphBothWays) {
  const auto g = ParseGraph(kAll);
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_TRUE(Validate(*g).ok()) << Validate(*g);
  EXPECT_EQ(FormatGraph(*g), kAll);
}

TEST(Text, FillsTheFieldsOfTheGraph) {
  const Graph g = ParseGraph(kAll).value();
  const Task& t1 = g.task(TaskId(1));
  EXPECT_EQ(t1.duration, Duration::Us(40));
  EXPECT_EQ(t1.gap, Duration::Ns(-20));
  EXPECT_EQ(t1.kind, TaskKind::kKernel);
  EXPECT_EQ(g.Kernel(TaskId(1))->grid[1], 4u);
  EXPECT_EQ(g.Copy(TaskId(2))->bytes, 4096u);
  EXPECT_EQ(g.Copy(TaskId(2))->from, Memory::kPinned);
  EXPECT_EQ(g.Collective(TaskId(3))->elements_out, 2048);
  EXPECT_EQ(g.Transfer(TaskId(3)), Duration::Us(12));
  EXPECT_EQ(g.Name(g.OpOf(g.task(TaskId(0)).scope)->shapes), "[[32, 3]]");
  EXPECT_EQ(g.lane(LaneId(1)).lane.device, 0);
  EXPECT_EQ(g.lane(LaneId(1)).lane.number, 7);
  EXPECT_EQ(g.lane(LaneId(2)).order, LaneOrder::kPriority);
  EXPECT_EQ(g.steps()[1].recorded_period, Duration::Us(1500));
  EXPECT_EQ(g.lane(LaneId(0)).first, TaskId(6));
  const Edge& e = g.edges()[0];
  EXPECT_EQ(e.from, TaskId(0));
  EXPECT_EQ(e.to, TaskId(1));
  EXPECT_EQ(e.lag, Duration::Us(2));
  EXPECT_EQ(e.rule, Rule::kLaunch);
}

TEST(Text, PeopleMayLeaveOutWhatIsUsual) {
  const auto g = ParseGraph(R"(
# Two lanes.
lane cpu thread   # the main thread
lane gpu0.7 stream
launch  cpu    call 5us
gemm    gpu0.7 kernel 40us after launch
done    cpu    wait until gemm
)");
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ(Simulate(*g)->makespan, Duration::Us(45));
}

TEST(Text, EdgesMayPointAtLaterLines) {
  const auto g = ParseGraph("lane a thread\nlane b thread\nx a host 1us after y\ny b host 2us");
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ(Simulate(*g)->makespan, Duration::Us(3));
}

TEST(Text, RandomGraphsComeBackAsTheyWere) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Graph g = RandomGraph(seed, {.tasks = 1 + seed % 50, .priority_lanes = seed % 3});
    const std::string text = FormatGraph(g);
    const auto again = ParseGraph(text);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
    EXPECT_EQ(FormatGraph(*again), text);
    ASSERT_EQ(again->size(), g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      const Task& a = g.tasks()[i];
      const Task& b = again->tasks()[i];
      EXPECT_EQ(a.lane_prev, b.lane_prev);
      EXPECT_EQ(a.lane_next, b.lane_next);
      EXPECT_EQ(a.overlaps, b.overlaps);
      EXPECT_EQ(a.step, b.step);
      EXPECT_EQ(g.Name(a.name), again->Name(b.name));
    }
    EXPECT_EQ(Simulate(*again)->end, Simulate(g)->end);
  }
}

TEST(Text, LanesWithTheSameOrNoNameStayApart) {
  Graph g;
  for (int i = 0; i < 3; ++i) g.AddLane({.lane = {.name = g.AddName("pt main thread")}});
  for (int i = 0; i < 2; ++i) g.AddLane({.lane = {.name = g.AddName("cpu0")}});
  const auto again = ParseGraph(FormatGraph(g));
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->lanes().size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(again->Name(again->lanes()[i].lane.name), g.Name(g.lanes()[i].lane.name));
  }
}

TEST(Text, MistakesAreShownWithTheirPlace) {
  struct Case {
    std::string_view text, error;
  };
  const Case cases[] = {
      {"lane", "expected the lane's name at the end of the line (line 1, column 1)"},
      {"lane a", "expected lane kind at the end"},
      {"lane a road", "'road' is no lane kind (line 1, column 8)"},
      {"lane a thread fast", "'fast' is no property of a lane (line 1, column 15)"},
      {"lane a thread speed=1", "'speed' is no property of a lane"},
      {"lane a thread queue=x", "queue: 'x' is no whole number in range"},
      {"lane a thread queue=-1", "no whole number in range"},
      {"lane a thread\nlane a thread", "'a' is defined twice (line 2, column 6)"},
      {"lane a:b thread", "must not hold ':' or '='"},
      {"lane a thread\nt b host", "no lane is called 'b' (line 2, column 3)"},
      {"lane a thread\nt a dance", "'dance' is no task kind (line 2, column 5)"},
      {"lane a thread\nt a host 5", "'5' is no property of a task"},
      {"lane a thread\nt a host 5us gap", "expected gap at the end of the line"},
      {"lane a thread\nt a host gap 5parsec", "'5parsec' is no gap, expected a time such as 5us"},
      {"lane a thread\nt a host after", "expected a task"},
      {"lane a thread\nt a host after u", "no task is called 'u' (line 2, column 16)"},
      {"lane a thread\nt a host bytes=5", "a host does not have these details"},
      {"lane a thread\nt a memcpy from=moon", "'moon' is no kind of memory"},
      {"lane a thread\nt a kernel grid=1,2,3,4", "more than three dimensions"},
      {"lane a thread\nt a host behind u", "no task is called 'u'"},
      {"lane a thread\nlane b thread\nt a host\nu b host behind t", "of another lane"},
      {"lane a thread\nt a host \"x", "text is not closed"},
      {"lane a thread\nt a host \"\\q\"", "unknown escape"},
      {"lane a thread\nt a host \"x\"y", "expected a space after the closing quote"},
      {"layer L \"x\" in=M", "no layer is called 'M'"},
      {"step 5", "expected the step's label in quotes"},
      {"device x \"V100\"", "'x' is no whole number"},
      {"lane a thread\nscope s frame a \"f\" shapes=\"[]\"", "only an op has op details"},
  };
  for (const Case& c : cases) {
    const auto g = ParseGraph(c.text);
    ASSERT_FALSE(g.ok()) << c.text;
    EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(g.status())), HasSubstr(std::string(c.error))) << c.text;
  }
}

TEST(Text, TimesAreExact) {
  const std::pair<std::string_view, int64_t> cases[] = {
      {"0", 0},        {"7ns", 7},         {"1.5us", 1500},    {"12.345us", 12345},
      {"-3us", -3000}, {"40ms", 40000000}, {"2s", 2000000000}, {"1234.567us", 1234567},
  };
  for (const auto& [text, ns] : cases) {
    EXPECT_EQ(ParseTime(text), Duration::Ns(ns)) << text;
    EXPECT_EQ(FormatTime(Duration::Ns(ns)), text);
  }
  EXPECT_EQ(ParseTime("+0.5ms"), Duration::Us(500));
  for (std::string_view bad : {"", "5", "us", "1.2345us", "1.ns", "1.2.3us", ".5us", "5 us",
                               "--5us", "9999999999999999999999s", "1e3us", "0.5ns"}) {
    EXPECT_EQ(ParseTime(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace daydream
