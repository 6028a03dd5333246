// fp16-compress: gradients cross the network in 16 bit.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/exchange.h"

namespace daydream {
namespace {

constexpr std::string_view kFp16CompressTypes[] = {"fp16", "bf16"};
constexpr ParamSpec kFp16CompressParams[] = {
    {.name = "dtype",
     .unit = Unit::kText,
     .text_fallback = "fp16",
     .choices = kFp16CompressTypes,
     .help = "what gradients are while they are exchanged",
     .source = "chosen by the user"},
    kExchangeFabricParam,
};

absl::Status RunFp16Compress(const Params& params, Editor& edit) {
  edit.BeginCause("gradients cross the network in 16 bit");
  DD_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::Find(edit, params.text("fabric")));
  size_t narrow = 0;
  for (Exchange& e : exchanges.all) {
    if (e.element_bytes <= 2) {
      ++narrow;
      continue;
    }
    const auto elements = static_cast<double>(e.elements());
    const Duration cast = exchanges.Moves(e, static_cast<double>(e.bytes) + 2 * elements);
    exchanges.KernelBefore(e, "narrow a bucket", cast);
    DD_RETURN_IF_ERROR(exchanges.Resize(e, e.kind, 2 * elements));
    exchanges.KernelAfter(e, "widen a bucket", cast);
  }
  if (narrow > 0) {
    edit.changes().notes.push_back(fmt::format("{} exchanges are in 16 bit already", narrow));
  }
  edit.changes().memory.push_back({.what = "a bucket in 16 bit",
                                   .bytes = static_cast<int64_t>(exchanges.GradientBytes() / 2),
                                   .estimate = true,
                                   .at_most = true});
  exchanges.Finish();
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFp16Compress = {
    .name = "fp16-compress",
    .summary = "Gradients are exchanged in 16 bit",
    .params = kFp16CompressParams,
    .apply = &RunFp16Compress,
    .model =
        "Each bucket is cast before it is exchanged and after (6 bytes an element through memory, "
        "each time) and sends half of its bytes; its transfer follows the fabric, or, in a "
        "recorded run of several GPUs, the sizes that were recorded there. Waiting for other "
        "ranks stays.",
    .ignores =
        "What 16 bit do to the gradients; in a recorded run the kernels that share the GPU with a "
        "collective keep their times.",
    .sources =
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks, fp16_compress_hook and "
        "bf16_compress_hook; fabrics: docs/ranks.md",
    .advice = {.effort = "1 line", .risk = "numerics", .how = {}},
    .memory = MemoryEffect::kAdds,
    .memory_model = "At most a copy of all gradients in 16 bit.",
};

}  // namespace daydream
