// Rules Q1-Q5: the launch queue of a stream is bounded. Each launch takes a place from its call
// until its operation starts; a call whose operation would be `depth` places deep returns when the
// operation depth - 1 places earlier starts.
//
// Measured on a V100 (1285 blocked calls of a ResNet-50 step) and on two H100 (diffusion with
// weights copied from pinned memory: with host copies counted the blocked calls come out at 1134 to
// 1141 in flight, without them 115 of 128 at the same 1022).
//
// Streams may share a queue (rule Q4, graph/shared_queues.h): a program may have more of them than
// the driver has queues. Measured on one H200 (driver 580, tests/data/h200): of 529 calls of gnmt
// that took long, the default stream alone holds 32 at its best depth. With streams 24 and 30
// together 417 return with 1020 or 1021 in flight, and nearly all others are of the begin of the
// window, when places were taken by what was not recorded. Streams 30 to 33 are used alike, so
// which of these it is cannot be told; numbers of streams do not say who shares.
//
// A run of eight waits of a stream for others (cuDNN joins eight before a convolution) takes one
// place on that card: with these counted 868 calls of resnet50 that took long return after what
// releases them at one depth, 1022, and 596 of vgg19; without them 280 at 1015 and 455 at 1000, and
// 776 and 632 where the depth may drift. Waits for twelve, in gnmt, take none: counted, its calls
// are 2 to 10 places off. Why is not known, so a trace decides for itself (rule Q2). The place is
// free when the operation before the waits is over: 48 calls of vgg19 in steps 2 to 8 return 5 to
// 20 us after that, up to 0.9 ms before the operation behind the waits starts.
//
// A record of an event that others wait for finds no room either: 14 of 15 such calls of vgg19 that
// took 0.1 to 2.1 ms in these steps return when the next launch would. They take no place.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace daydream {

// From the start of the releasing operation to the return of the blocked call. Measured on that
// V100: 5 % 4.25 us, median 5.25 us, 95 % 6.25 us.
constexpr Duration kQueueReleaseLag = Duration::Ns(5250);
// Places per queue on NVIDIA GPUs: exact on the V100 and on both H100.
constexpr uint32_t kDefaultQueueDepth = 1022;

// Kernels, sets and copies within device memory take a place in the launch queue; copies between
// host and device take none.
bool TakesPlace(const Graph& graph, TaskId gpu_task);

// Computes the queue edges into launch calls of the lanes with `lanes[lane]` anew from
// GraphLane::queue_depth and the live tasks, keeping the lag of pairs that were coupled before from
// the start of the operation. Records of events that waited for room wait for what the next launch
// would. Runs of waits are not counted as places, so none of these edges is from an end.
// Call it after GPU tasks of these lanes were inserted, removed or moved. O(tasks + edges), however
// many lanes.
void RebuildQueueEdges(Graph& graph, const std::vector<bool>& lanes);

}  // namespace daydream
