// zero1: data parallelism whose ranks each keep a part of the optimizer's state.
#include <array>
#include <iterator>
#include <utility>

#include "transforms/core/transform.h"
#include "transforms/optimizations/accumulate.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/spread_params.h"

namespace daydream {
namespace {

template <size_t... kAt>
constexpr auto WithGather(std::index_sequence<kAt...>) {
  return std::array{kSpreadParams[kAt]..., kGatherParam};
}
constexpr auto kZero1Params = WithGather(std::make_index_sequence<std::size(kSpreadParams)>());

constexpr Conflict kZero1Conflicts[] = {
    {.with = "ddp", .reason = "both spread the step over ranks"},
    {.with = "zero2", .reason = "both shard the optimizer"}};

absl::Status RunZero1(const Params& params, Editor& edit) {
  if (params["accumulate"] > 1) {
    DD_RETURN_IF_ERROR(AccumulatePasses(edit, static_cast<int>(params["accumulate"])));
  }
  DD_ASSIGN_OR_RETURN(DataParallel how, DataParallelOf(params, Sharding::kOptimizer));
  how.broadcast = params.text("gather") == "broadcast";
  return SpreadOver(edit, how);
}

}  // namespace

constinit const Transform kZero1 = {
    .name = "zero1",
    .summary = "Data parallelism with a sharded optimizer (ZeRO stage 1)",
    .params = kZero1Params,
    .apply = &RunZero1,
    .model =
        "As ddp, with reduce-scatters in place of all-reduces; the kernels of the optimizer take "
        "1/n of their time, but never less than a kernel's least, and are followed by one "
        "all-gather of all parameters, for which the next step waits. With gather=broadcast "
        "gradients are all-reduced, and each parameter is broadcast by its owner, one after the "
        "other.",
    .ignores =
        "As ddp; launches of the optimizer stay as they are, and the all-gather does not overlap "
        "with the forward pass.",
    .sources = "Rajbhandari et al. 2020 (ZeRO), section 5; as ddp otherwise",
    .conflicts = kZero1Conflicts,
    .memory = MemoryEffect::kAdds,
    .memory_model = "1/n of the optimizer's state stays; buckets beside the gradients as for ddp.",
};

}  // namespace daydream
