// One recorded GPU as one of n that train on more data: gradients are exchanged in buckets while
// backward goes on, as DistributedDataParallel of PyTorch does, or sharded (ZeRO stages 1 and 2).
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/status.h"
#include "costmodel/network/fabric.h"
#include "graph/ranks/collective_kind.h"
#include "transforms/core/editor.h"
#include "transforms/parallel/buckets.h"

namespace daydream {

enum class Sharding : uint8_t {
  kNone,       // DistributedDataParallel: every rank has everything
  kOptimizer,  // ZeRO stage 1: each rank keeps and updates 1/n of the optimizer's state
  kGradients,  // stage 2: and keeps 1/n of the gradients
};

// Buckets anew in a graph that exchanges gradients already, once its own exchanges are gone.
struct BucketsAnew {
  std::function<absl::StatusOr<Duration>(CollectiveKind, double bytes)> time;
  std::map<uint16_t, TaskId> after;  // by step to change: what waits for all of its gradients
  Duration launch;                   // of a collective, on the host
};

struct DataParallel {
  int ranks = 1;
  Fabric fabric;
  BucketCaps caps;
  Sharding sharding = Sharding::kNone;
  bool overlap = true;       // else all buckets are exchanged after backward
  bool bucket_view = false;  // gradient_as_bucket_view=True: nothing is copied back
  bool buffers = true;       // broadcast_buffers=True: before each forward pass
  // kOptimizer: gradients are all-reduced, and each owner broadcasts its parameters one by one.
  bool broadcast = false;
  uint32_t wire_bytes = 0;  // of an element on the wire; 0: as it is
  // Only buckets go in, launched from the hooks that are there; `fabric` is not looked at.
  const BucketsAnew* anew = nullptr;
};

// Per step of the graph: behind each gradient a hook, which scales it into its bucket; behind the
// one that closes a bucket the launch of its collective on a stream of its own; after backward the
// wait of the compute stream, and copies back. Before the forward pass the buffers of batch norms
// are broadcast, where their shapes were recorded. Sharded: reduce-scatters, an optimizer of 1/n,
// and an all-gather of the parameters behind it. All ranks are alike, so that nobody waits: one
// stands for n. With one rank there is no collective. Collectives of a trace that has some are
// re-timed. E0815 where sizes of gradients are not known, E0823 when the fabric holds no n ranks.
// O(tasks + edges).
absl::Status SpreadOver(Editor& edit, const DataParallel& how);

}  // namespace daydream
