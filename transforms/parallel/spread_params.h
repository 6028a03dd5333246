// What ddp, zero1 and zero2 ask for, and bucket in part, in one place.
#pragma once

#include "transforms/core/params.h"
#include "transforms/parallel/data_parallel.h"

namespace daydream {

inline constexpr std::string_view kYesNo[] = {"yes", "no"};
inline constexpr std::string_view kWireTypes[] = {"none", "fp16", "bf16"};

constexpr ParamSpec BucketSizeParam(std::string_view name) {
  return {
      .name = name,
      .unit = Unit::kBytes,
      .fallback = 25 << 20,
      .min = 1,
      .max = 1e12,
      .help = "bucket_cap_mb: gradients that are exchanged together; MB are 2^20 here, as there",
      .source = "the default of DistributedDataParallel"};
}
inline constexpr ParamSpec kOverlapParam = {
    .name = "overlap",
    .unit = Unit::kText,
    .text_fallback = "yes",
    .choices = kYesNo,
    .help = "exchange buckets while backward goes on, else all of them after it",
    .source = "the default of DistributedDataParallel"};

inline constexpr ParamSpec kSpreadParams[] = {
    {.name = "ranks",
     .fallback = 2,
     .min = 1,
     .max = 1 << 20,
     .help = "GPUs that train together, this one included",
     .source = "chosen by the user",
     .required = true,
     .whole = true},
    {.name = "fabric",
     .unit = Unit::kText,
     .help = "what joins them: one of `daydream fabric list`, or a file; not needed for one rank",
     .source = "chosen by the user"},
    BucketSizeParam("bucket"),
    kOverlapParam,
    {.name = "bucket_view",
     .unit = Unit::kText,
     .text_fallback = "no",
     .choices = kYesNo,
     .help = "gradient_as_bucket_view: nothing is copied back out of the buckets",
     .source = "the default of DistributedDataParallel"},
    {.name = "buffers",
     .unit = Unit::kText,
     .text_fallback = "yes",
     .choices = kYesNo,
     .help = "broadcast_buffers: running statistics of batch norms, before each forward pass",
     .source = "the default of DistributedDataParallel"},
    {.name = "compress",
     .unit = Unit::kText,
     .text_fallback = "none",
     .choices = kWireTypes,
     .help = "exchange gradients in this type, with a cast of each bucket before and after",
     .source = "chosen by the user: the hooks of torch.distributed.algorithms.ddp_comm_hooks"},
    {.name = "accumulate",
     .fallback = 1,
     .min = 1,
     .max = 1024,
     .help = "passes for each step of the optimizer; gradients are exchanged in the last of them",
     .source = "chosen by the user: no_sync() of DistributedDataParallel",
     .whole = true},
};

// "25MB" is what PyTorch calls 25: bucket_cap_mb counts in 2^20 bytes.
uint64_t BucketBytes(double bytes);

inline constexpr std::string_view kGathers[] = {"all-gather", "broadcast"};
inline constexpr ParamSpec kGatherParam = {
    .name = "gather",
    .unit = Unit::kText,
    .text_fallback = "all-gather",
    .choices = kGathers,
    .help =
        "how parameters come back: at once, after reduce-scatters; or broadcast one by one by "
        "their owners, after all-reduces, as ZeroRedundancyOptimizer of PyTorch does",
    .source = "ZeRO, section 5; torch/distributed/optim/zero_redundancy_optimizer.py"};

// E0820 and E0821 as ChooseFabric().
absl::StatusOr<DataParallel> DataParallelOf(const Params& params, Sharding sharding);

}  // namespace daydream
