// ddp: one recorded GPU becomes one of n that exchange gradients as DistributedDataParallel does.
#include "transforms/core/transform.h"
#include "transforms/optimizations/accumulate.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/spread_params.h"

namespace daydream {
namespace {

absl::Status RunDdp(const Params& params, Editor& edit) {
  if (params["accumulate"] > 1) {
    DD_RETURN_IF_ERROR(AccumulatePasses(edit, static_cast<int>(params["accumulate"])));
  }
  DD_ASSIGN_OR_RETURN(const DataParallel how, DataParallelOf(params, Sharding::kNone));
  return SpreadOver(edit, how);
}

}  // namespace

constinit const Transform kDdp = {
    .name = "ddp",
    .summary = "Data parallelism over n GPUs (DistributedDataParallel)",
    .params = kSpreadParams,
    .apply = &RunDdp,
    .model =
        "Gradients, in the order and with the sizes that backward gave them, go into buckets "
        "exactly as PyTorch fills them. Behind each gradient the host runs a hook that scales it "
        "into its bucket; behind the one that closes a bucket, four times a plain gradient node "
        "launches an all-reduce on a stream of its own, which starts 1.7 us after the launch, the "
        "compute before it and the all-reduce before it, and takes what the fabric says. While it "
        "runs beside compute, both go at the fabric's `overlap`. After backward the compute "
        "stream waits for each bucket and copies it back. Before each forward pass the running "
        "statistics of batch norms are broadcast. All ranks are alike, so nobody waits. "
        "In a trace that has collectives these are timed anew among n ranks.",
    .ignores =
        "Ranks that differ (daydream scale adds them), buffers of other modules than batch norms, "
        "sparse gradients, other traffic on the network.",
    .sources =
        "PyTorch torch/csrc/distributed/c10d/reducer.cpp; buckets and launch points as recorded "
        "on two A100 GPUs; fabrics: docs/ranks.md",
    .memory = MemoryEffect::kAdds,
    .memory_model = "Buckets beside the gradients, unless gradient_as_bucket_view.",
};

}  // namespace daydream
