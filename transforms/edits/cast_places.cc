#include "transforms/edits/cast_places.h"

#include <algorithm>

#include "base/text.h"
#include "graph/scopes.h"

namespace daydream {

void CastPlaces::AroundMatrix(const Matrix& m) {
  const Task& task = graph_.task(m.at);
  const bool backward = task.phase == Phase::kBackward;
  if (m.narrow) last_narrow_[{task.step, task.phase}] = m.at;
  // In backward the outermost op is the whole of one autograd function.
  const ScopeId op = backward ? OutermostOp(graph_, task.scope) : rules_.OpOf(m.at);
  if (op.valid() && op == last_matrix_) return;  // further kernels of the same op
  last_matrix_ = op;
  const bool weight =
      !works_.HasNoWeight(m.at) && rules_.Of(m.at).traits.kind != KernelClass::kAttention;
  uint64_t weights = 0, inputs = 0, bias = 0;
  if (const OpWorkTable::Op of = works_.Of(m.at); of.work && !of.work->products.empty()) {
    const GemmShape& p = of.work->products[0];
    weights = static_cast<uint64_t>(std::max<int64_t>(p.n * p.k, 0));
    bias = static_cast<uint64_t>(std::max<int64_t>(p.n, 0));
    const bool gemm = of.work->kind == OpWork::Kind::kGemm;
    if (gemm) inputs = static_cast<uint64_t>(std::max<int64_t>(p.batch * p.m * p.k, 0));
  }
  const auto add = [&](bool after, bool narrow, uint64_t elements) {
    casts_.push_back({m.at, after, narrow, m.wanted, elements});
  };
  const bool input = m.wide_input || m.narrow;
  if (backward) {
    if (input) add(false, m.narrow, inputs);
    if (weight && !m.half_already) {
      add(true, false, weights);
      if (AddsBias(op)) add(true, false, bias);
    }
    return;
  }
  if (weight) {
    add(false, m.narrow, weights);
    if (!m.narrow && AddsBias(op)) add(false, false, bias);
  }
  if (input) add(false, m.narrow, inputs);
}

bool CastPlaces::AroundFull(TaskId t, const KernelPrecision& p, bool half, DType wanted) {
  const bool backward = graph_.task(t).phase == Phase::kBackward;
  const KernelClass kind = p.traits.kind;
  const bool casts = kind == KernelClass::kNorm || (kind == KernelClass::kSoftmax && backward);
  const ScopeId op = rules_.OpOf(t);
  if (half && casts && wanted != DType::kTf32 && (!op.valid() || op != last_full_)) {
    casts_.push_back(
        {.at = t, .dtype = wanted, .elements = static_cast<uint64_t>(shapes_.Of(t).largest)});
  }
  last_full_ = op;
  return half && backward && kind != KernelClass::kNorm && kind != KernelClass::kOptimizer;
}

void CastPlaces::AddScaleUpdates() {
  for (const auto& [where, last] : last_narrow_) {
    casts_.push_back({.at = last, .after = true, .narrow = true, .dtype = DType::kFp8});
  }
}

// A linear layer with a bias, whose product and bias are one op.
bool CastPlaces::AddsBias(ScopeId op) const {
  if (!op.valid()) return false;
  return ContainsAny(graph_.Name(ScopeAt(graph_, op).name), {"addmm", "AddmmBackward"});
}

}  // namespace daydream
