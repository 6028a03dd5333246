// Asks what a faster kernel would bring to a graph of three tasks.
#include <cstdio>

#include "graph/text.h"
#include "simulator/simulate.h"

int main() {
  absl::StatusOr<daydream::Graph> graph = daydream::ParseGraph(R"(
lane cpu0 thread
lane gpu0.7 stream
t0 cpu0 call 5us "cudaLaunchKernel"
t1 gpu0.7 kernel 40us "sgemm" after t0 launch +2us
t2 cpu0 wait "cudaDeviceSynchronize" until t1 hostwait
)");
  if (!graph.ok()) return 1;
  absl::StatusOr<daydream::Timeline> before = daydream::Simulate(*graph);
  graph->mutable_task(daydream::TaskId(1)).duration = daydream::Duration::Us(10);
  absl::StatusOr<daydream::Timeline> after = daydream::Simulate(*graph);
  if (!before.ok() || !after.ok()) return 1;
  std::printf("%g us -> %g us\n", before->makespan.us(), after->makespan.us());
}
