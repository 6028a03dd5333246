// Which operand an op keeps for its backward pass, by its name.
#include "base/text.h"
#include "transforms/analysis/saved_tensors.h"

namespace daydream {
namespace {

struct KnownOp {
  std::string_view part;  // of the name
  Keeps keeps;
};

// The first row whose text is in the name decides. Source: derivatives.yaml of PyTorch 2.
constexpr KnownOp kKnownOps[] = {
    {"scaled_dot_product", Keeps::kAttention},
    {"flash_attention", Keeps::kAttention},
    {"efficient_attention", Keeps::kAttention},
    {"conv_transpose", Keeps::kInput},
    {"convolution", Keeps::kInput},
    {"conv", Keeps::kInput},
    {"dropout", Keeps::kMask},
    {"bernoulli", Keeps::kMask},
    {"batch_norm", Keeps::kInput},
    {"layer_norm", Keeps::kInput},
    {"group_norm", Keeps::kInput},
    {"rms_norm", Keeps::kInput},
    {"softmax", Keeps::kResult},
    {"relu6", Keeps::kInput},
    {"leaky_relu", Keeps::kInput},
    {"relu", Keeps::kResult},
    {"clamp_min", Keeps::kResult},
    {"threshold", Keeps::kResult},
    {"hardtanh", Keeps::kInput},
    {"sigmoid", Keeps::kResult},
    {"tanh", Keeps::kResult},
    {"gelu", Keeps::kInput},
    {"elu", Keeps::kResult},
    {"silu", Keeps::kInput},
    {"hardswish", Keeps::kInput},
    {"mish", Keeps::kInput},
    {"rsqrt", Keeps::kResult},
    {"sqrt", Keeps::kResult},
    {"max_pool", Keeps::kInput},
    {"avg_pool", Keeps::kInput},
    {"upsample", Keeps::kNothing},
    {"addmm", Keeps::kOperands},
    {"baddbmm", Keeps::kOperands},
    {"bmm", Keeps::kOperands},
    {"matmul", Keeps::kOperands},
    {"linear", Keeps::kOperands},
};
// Names that must fit as a whole.
constexpr KnownOp kKnownNames[] = {
    {"mm", Keeps::kOperands},
    {"mul", Keeps::kOperands},
    {"div", Keeps::kOperands},
    {"exp", Keeps::kResult},
    {"pow", Keeps::kInput},
    {"log", Keeps::kInput},
    {"abs", Keeps::kInput},
    {"sin", Keeps::kInput},
    {"cos", Keeps::kInput},
    {"add", Keeps::kNothing},
    {"sub", Keeps::kNothing},
    {"rsub", Keeps::kNothing},
    {"neg", Keeps::kNothing},
    {"copy", Keeps::kNothing},
    {"clone", Keeps::kNothing},
    {"to", Keeps::kNothing},
    {"_to_copy", Keeps::kNothing},
    {"contiguous", Keeps::kNothing},
    {"cat", Keeps::kNothing},
    {"_cat", Keeps::kNothing},
    {"stack", Keeps::kNothing},
    {"sum", Keeps::kNothing},
    {"mean", Keeps::kNothing},
    {"fill", Keeps::kNothing},
    {"zero", Keeps::kNothing},
    {"index", Keeps::kNothing},
    {"index_select", Keeps::kNothing},
    {"embedding", Keeps::kNothing},
    {"nll_loss_forward", Keeps::kNothing},
    {"masked_fill", Keeps::kNothing},
    {"where", Keeps::kNothing},
};

}  // namespace

Keeps KeptBy(std::string_view op, bool* known) {
  if (known != nullptr) *known = true;
  for (const KnownOp& k : kKnownNames) {
    if (op == k.part) return k.keeps;
  }
  for (const KnownOp& k : kKnownOps) {
    if (Contains(op, k.part)) return k.keeps;
  }
  if (known != nullptr) *known = false;
  return Keeps::kNothing;
}

}  // namespace daydream
