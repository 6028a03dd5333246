// zero2: data parallelism whose ranks each keep a part of the optimizer's state and gradients.
#include "transforms/core/transform.h"
#include "transforms/optimizations/accumulate.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/spread_params.h"

namespace daydream {
namespace {

constexpr Conflict kZero2Conflicts[] = {
    {.with = "ddp", .reason = "both spread the step over ranks"}};

absl::Status RunZero2(const Params& params, Editor& edit) {
  if (params["accumulate"] > 1) {
    DD_RETURN_IF_ERROR(AccumulatePasses(edit, static_cast<int>(params["accumulate"])));
  }
  DD_ASSIGN_OR_RETURN(const DataParallel how, DataParallelOf(params, Sharding::kGradients));
  return SpreadOver(edit, how);
}

}  // namespace

constinit const Transform kZero2 = {
    .name = "zero2",
    .summary = "Data parallelism with sharded gradients and optimizer (ZeRO stage 2)",
    .params = kSpreadParams,
    .apply = &RunZero2,
    .model =
        "As zero1. Gradients of other ranks are dropped once their bucket is scattered, so "
        "nothing is copied back.",
    .ignores = "As zero1.",
    .sources = "Rajbhandari et al. 2020 (ZeRO), section 5; as ddp otherwise",
    .conflicts = kZero2Conflicts,
    .memory = MemoryEffect::kAdds,
    .memory_model = "1/n of the optimizer's state and of the gradients stays.",
};

}  // namespace daydream
