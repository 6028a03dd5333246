// Rules Q1-Q3: the launch queue of a stream is bounded. Each launch takes a place from its call
// until its operation starts; a call whose operation would be `depth` places deep returns when the
// operation depth - 1 places earlier starts.
//
// Measured on a V100 (1285 blocked calls of a ResNet-50 step) and on two H100 (diffusion with
// weights copied from pinned memory: with host copies counted the blocked calls come out at 1134 to
// 1141 in flight, without them 115 of 128 at the same 1022).
//
// Not followed yet, measured on one H200 (driver 580, tests/data/h200) by counting what was
// launched and not started when a call of more than 40 us returned:
// * Event records, and waits on their own, take no place. Eight waits in a row (cuDNN joins eight
//   streams before a convolution) take one together: with these counted, 1038 of 1070 calls of
//   resnet50 and 773 of 789 of vgg19 come out at 1020 to 1022; without, most at 1013 to 1021 and
//   997 to 1004. No runs of two to seven were seen. In gnmt runs of twelve take none; why is not
//   known.
// * Streams may share a queue. In gnmt the default stream alone fits no depth: the best eight
//   neighbouring depths hold 41 % of the calls. Together with stream 24 and one of 30 to 33 it
//   does: 95 to 97 % at eight depths from 1014 to 1026; in a trace of torch.profiler, 33 % and 89
//   to 95 %. Of 1160 sets with both streams that calls block on, the best hold these three; which
//   of the four it is cannot be told, and numbers of streams do not say who shares.
// Until then such waits stay work of the host: amp of gnmt is predicted as 127 ms, 42 was measured.
// With launches that long cut to their usual time, it is 49 ms (38 to 69).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace daydream {

// From the start of the releasing operation to the return of the blocked call. Measured on that
// V100: 5 % 4.25 us, median 5.25 us, 95 % 6.25 us.
constexpr Duration kQueueReleaseLag = Duration::Ns(5250);
// Places per stream on NVIDIA GPUs: exact on the V100 and on both H100.
constexpr uint32_t kDefaultQueueDepth = 1022;

// Kernels, sets and copies within device memory take a place in the launch queue; copies between
// host and device take none.
bool TakesPlace(const Graph& graph, TaskId gpu_task);

// Computes the queue edges into launch calls of the lanes with `lanes[lane]` anew from
// GraphLane::queue_depth and the live tasks, keeping the lag of pairs that were coupled before.
// Call it after GPU tasks of these lanes were inserted, removed or moved. O(tasks + edges), however
// many lanes.
void RebuildQueueEdges(Graph& graph, const std::vector<bool>& lanes);

}  // namespace daydream
