// What option files leave of the host when they fuse kernels.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "simulator/simulate.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_file.h"

namespace daydream {
namespace {

TEST(OptionFile, FusingLeavesTheProgramAroundIt) {
  auto graph = ParseGraph(R"(lane cpu0   thread
lane gpu0.7 stream
scope op1 op cpu0 "aten::relu"
c0 cpu0   call   5us "cudaLaunchKernel"
k0 gpu0.7 kernel 4us "relu" after c0 launch
h1 cpu0   host   8us gap 30us "aten::relu" scope op1
c1 cpu0   call   5us "cudaLaunchKernel" scope op1
k1 gpu0.7 kernel 4us "relu" after c1 launch
p0 cpu0   host   5us "print"
)");
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  auto file = OptionFile::Parse(R"(daydream: 1
name: mine
summary: A test
steps:
  - fuse: {select: {kernel: relu}, group_by: step, into: {name: fused, time: 4us, launches: 1}}
)",
                                "mine.yaml");
  ASSERT_TRUE(file.ok()) << Message(file.status());
  const Transform& t = (*file)->transform();
  ASSERT_TRUE(Apply({&t, *BindParams(t.name, t.params, {}), *file}, *graph).ok());
  // The op and its call are gone; the 30 us behind the op are the program's.
  EXPECT_EQ(Simulate(*graph)->makespan, Duration::Us(5 + 30 + 5));
}

}  // namespace
}  // namespace daydream
