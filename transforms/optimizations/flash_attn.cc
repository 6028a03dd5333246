// flash-attn: each chain of kernels that is attention (transforms/analysis/attention_chains.h)
// becomes one kernel.
#include <algorithm>
#include <cmath>

#include "transforms/analysis/attention_chains.h"
#include "transforms/core/floor_param.h"
#include "transforms/core/transform.h"
#include "transforms/edits/fuse_groups.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr std::string_view kFlashAttnTypes[] = {"auto", "fp32", "fp16", "bf16"};
constexpr ParamSpec kFlashAttnParams[] = {
    {.name = "dtype",
     .unit = Unit::kText,
     .text_fallback = "auto",
     .choices = kFlashAttnTypes,
     .help = "format of queries, keys and values; auto = as recorded (say so after amp)",
     .source = "chosen by the user"},
    kAttentionShareParam,
    kFloorParam,
};

DType WantedByFlashAttn(std::string_view text, DType recorded) {
  if (text == "fp32") return DType::kFp32;
  if (text == "fp16") return DType::kFp16;
  if (text == "bf16") return DType::kBf16;
  return recorded;
}

struct Merged {
  size_t forward = 0, backward = 0, kernels = 0;
  size_t slower = 0;  // chains that would not get faster
};

std::string WhyNoFlashAttn(const AttentionSearch& search, size_t fused_already) {
  if (fused_already > 0) return "its attention is fused already";
  if (search.unshaped > 0) {
    return "shapes of ops are needed to find attention (record_shapes=True)";
  }
  return "no product, softmax, product of matching shapes";
}

absl::Status RunFlashAttn(const Params& params, Editor& edit) {
  const Graph& graph = edit.graph();
  const DeviceSpec* spec = nullptr;
  size_t fused_already = 0;
  KernelClasses classes(graph);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.task(TaskId(i)).kind != TaskKind::kKernel || graph.task(TaskId(i)).removed) continue;
    if (spec == nullptr) spec = DeviceOf(graph, TaskId(i)).spec;
    const KernelClass kind = classes.Of(TaskId(i));
    if (kind == KernelClass::kAttention) ++fused_already;
  }
  auto& notes = edit.changes().notes;
  if (spec == nullptr) {
    const bool any = std::ranges::any_of(
        graph.tasks(), [](const Task& t) { return t.kind == TaskKind::kKernel && !t.removed; });
    notes.push_back(!any ? "there is no kernel in this trace"
                         : "the GPU is not known, so what a fused kernel takes is not");
    return absl::OkStatus();
  }
  const Duration floor = Duration::FromDouble(params["floor"]);
  const AttentionSearch search = FindAttention(edit, *spec);
  FuseGroups groups(edit);
  Merged merged;
  for (const AttentionChain& chain : search.chains) {
    const DType dtype = WantedByFlashAttn(params.text("dtype"), chain.dtype);
    const double after = FusedAttentionNs(*spec, chain.shape, dtype, params["share"]);
    Duration now;
    for (TaskId t : chain.kernels) now += graph.task(t).duration;
    const Duration then = std::max(Duration::FromDouble(after), floor);
    if (then >= now) {
      ++merged.slower;
      continue;
    }
    groups.Merge(chain.kernels,
                 chain.shape.backward ? "fused_attention_backward" : "fused_attention", then,
                 "attention in one kernel", /*whole_step=*/false);
    ++(chain.shape.backward ? merged.backward : merged.forward);
    if (!chain.shape.backward) groups.KeepBetween(chain.kernels, 0);
    merged.kernels += chain.kernels.size();
  }
  if (merged.forward > 0) {
    edit.changes().memory.push_back({.what = "scores of attention are not kept", .kept = true});
  }
  if (merged.forward + merged.backward > 0) {
    notes.push_back(fmt::format("{} kernels become {} forward and {} backward ones", merged.kernels,
                                merged.forward, merged.backward));
    if (merged.forward > 0 && merged.backward == 0 && groups.has_backward()) {
      edit.changes().warnings.push_back("no backward pass of attention was recognised: it stays");
    }
  } else if (merged.slower == 0) {
    notes.push_back(WhyNoFlashAttn(search, fused_already));
  }
  if (merged.slower > 0) {
    notes.push_back(fmt::format("{} would not get faster and stay", merged.slower));
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kFlashAttn = {
    .name = "flash-attn",
    .summary = "Attention runs in one fused kernel",
    .params = kFlashAttnParams,
    .apply = &RunFlashAttn,
    .model =
        "Chains of a product, elementwise work on its result, softmax and a product whose shapes "
        "fit become one kernel, forward and backward. It computes what they compute (backward also "
        "the scores again: five products for two) at a share of the tensor cores' peak, in fp32 at "
        "the sustained rate, and moves queries, keys, values, results and what is added to the "
        "scores (a mask or a bias, as large as recorded) once, never the scores. Launches and the "
        "host time of the merged ops are gone. Chains that would not get faster stay.",
    .ignores =
        "Causal masks, which let a fused kernel skip half of the work; that a mask may be one row "
        "or head repeated, or be multiplied by 0 (baddbmm with beta=0), which recorded shapes do "
        "not tell; the gradient of a bias; sizes that a library does not support.",
    .sources = "Dao et al.: FlashAttention (NeurIPS'22), FlashAttention-2 (2023)",
    .advice = {.effort = "~5 lines",
               .risk = "numerics",
               .how = "torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)"},
    .twice = "the attention is fused already",
    .memory_model =
        "Scores, their softmax and its dropout mask are no longer kept for backward; queries, "
        "keys and values are, as before.",
};

}  // namespace daydream
