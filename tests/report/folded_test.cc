// Stacks for flame graphs: one graph by hand, and sums against the tables that people read.
#include <map>
#include <string>

#include <gmock/gmock.h>

#include "graph/text.h"
#include "report/export/folded.h"
#include "report/host_table.h"
#include "report/summary.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"

namespace daydream {
namespace {

constexpr char kText[] = R"(
lane cpu0 thread number=1
lane gpu0.7 stream
layer enc "encoder"
layer lin "encoder.0" in=enc
scope step annotation cpu0 "ProfilerStep#3"
scope mm op cpu0 "aten::linear" in=step
scope in op cpu0 "aten::a;b" in=mm
t0 cpu0 host 4us "work" scope mm
t1 cpu0 call 5us gap 1us "cudaLaunchKernel" scope in
t2 gpu0.7 kernel 40us "sgemm" phase forward layer lin scope in after t1 launch +2us
t3 cpu0 wait "cudaDeviceSynchronize" scope step until t2 hostwait +0
t4 gpu0.7 kernel 3us "fill" after t2
)";

TEST(FoldedStacks, EveryFrameFromTheOutsideIn) {
  const auto graph = ParseGraph(kText);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Timeline timeline = *Simulate(*graph, {.blockers = true});
  // t0 0-4, t1 4-9 and 1 us after it, t2 11-51, t3 waits 10-51.
  EXPECT_EQ(FoldedStacks(*graph, timeline),
            "CPU;thread 1 (cpu0);ProfilerStep 1000\n"
            "CPU;thread 1 (cpu0);ProfilerStep;aten::linear 4000\n"
            "CPU;thread 1 (cpu0);ProfilerStep;aten::linear;aten::a:b;cudaLaunchKernel 5000\n"
            "CPU;thread 1 (cpu0);ProfilerStep;cudaDeviceSynchronize;(waits) 41000\n"
            "GPU;GPU 0 stream 7;forward;encoder;encoder.0;aten::linear;aten::a:b;sgemm 40000\n"
            "GPU;GPU 0 stream 7;no phase;fill 3000\n");
}

TEST(FoldedStacks, ATimelineWithoutTasksHasNoLine) {
  EXPECT_EQ(FoldedStacks(Graph(), Timeline()), "");
}

struct Sums {
  std::map<std::string, int64_t> by_root;  // "CPU", "GPU"
  int64_t waits = 0;
  int lines = 0;
};

Sums SumsOf(const std::string& folded) {
  Sums sums;
  std::istringstream in(folded);
  for (std::string line; std::getline(in, line); ++sums.lines) {
    const size_t space = line.rfind(' ');
    const int64_t ns = std::stoll(line.substr(space + 1));
    sums.by_root[line.substr(0, 3)] += ns;
    if (line.substr(0, space).ends_with("(waits)")) sums.waits += ns;
  }
  return sums;
}

TEST(FoldedStacks, NothingVanishes) {
  for (const char* name : {"launch-bound", "resnet50"}) {
    const BuiltGraph built = Example(name);
    const Timeline timeline = *Simulate(built.graph, {.blockers = true});
    const Sums sums = SumsOf(FoldedStacks(built.graph, timeline));
    Duration own, waiting;
    for (const HostRow& row : HostTable(built.graph, timeline)) {
      own += row.self;
      waiting += row.waiting;
    }
    const Summary summary = Summarize(built.graph, timeline, GroupBy::kKernel);
    // Each line and each row is rounded to a nanosecond.
    const double rounding = sums.lines + 1000;
    ASSERT_GT(sums.lines, 10) << name;
    EXPECT_NEAR(sums.by_root.at("GPU"), summary.gpu_time.ns, rounding) << name;
    EXPECT_NEAR(sums.by_root.at("CPU"), (own + waiting).ns, rounding) << name;
    EXPECT_NEAR(sums.waits, waiting.ns, rounding) << name;
  }
}

}  // namespace
}  // namespace daydream
