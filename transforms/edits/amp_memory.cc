#include "transforms/edits/amp_memory.h"

#include <cmath>

#include "base/text.h"
#include "transforms/analysis/kept_peak.h"
#include "transforms/analysis/saved_tensors.h"

namespace daydream {
namespace {

bool InHalf(const ForwardOp& op) {
  const DType dtype = op.shape.dtype;
  const bool fp32 = dtype == DType::kFp32 || dtype == DType::kUnknown;
  const bool stays = ContainsAny(op.shape.name, {"softmax", "layer_norm", "group_norm", "rms_norm",
                                                 "loss", "exp", "pow", "log"});
  const bool mask = op.keeps == Keeps::kMask;
  return op.shape.known() && fp32 && !stays && !mask;
}

void TellResults(Editor& edit, std::span<const ForwardOp> ops,
                 const absl::flat_hash_set<ScopeId>& to_half) {
  double all = 0, now_half = 0;
  for (const ForwardOp& op : ops) {
    const double bytes = op.elements * DTypeBytes(op.shape.dtype);
    all += bytes;
    if (InHalf(op) && to_half.contains(op.shape.scope)) now_half += bytes;
  }
  MemoryChange results{.what = "results in 16 bit"};
  if (all <= 0) {
    results.unknown = true;
  } else if (now_half > 0) {
    results.kept = true;
    results.in_step = 1 - 0.5 * now_half / all;
  } else {
    return;
  }
  edit.changes().memory.push_back(std::move(results));
}

}  // namespace

void TellAutocastMemory(Editor& edit, const absl::flat_hash_set<ScopeId>& to_half) {
  const std::vector<ForwardOp> ops = ForwardOps(edit.graph());
  absl::flat_hash_set<ScopeId> halved;
  for (const ForwardOp& op : ops) {
    if (!InHalf(op) || !halved.insert(op.shape.scope).second) continue;
    edit.ChangeOp(op.shape.scope).width *= 0.5;
  }
  const double weights =
      MostInAPass(ops, [](const ForwardOp& op) { return InHalf(op) ? op.weights / 2 : 0; });
  auto& memory = edit.changes().memory;
  if (HasBackward(edit.graph())) {
    memory.push_back({.what = "kept for backward in 16 bit", .kept = true});
  } else {
    TellResults(edit, ops, to_half);
  }
  memory.push_back(
      {.what = "weights in 16 bit, too", .bytes = std::llround(weights), .estimate = true});
}

}  // namespace daydream
