#include "transforms/analysis/op_access.h"

#include "base/text.h"
#include "graph/scopes.h"

#include <algorithm>
#include <cmath>

namespace daydream {
namespace {

// Ops nest a handful deep; the bound keeps hostile input from long chains.

template <size_t n>
bool IsOneOf(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Views of another number of elements than their base.
constexpr std::string_view kParts[] = {
    "aten::slice",        "aten::select",           "aten::narrow",       "aten::split",
    "aten::chunk",        "aten::split_with_sizes", "aten::unbind",       "aten::expand",
    "aten::unfold",       "aten::expand_as",        "aten::diagonal",     "aten::broadcast_to",
    "aten::tensor_split", "aten::unsafe_split",     "aten::unsafe_chunk", "aten::index_put_",
    "aten::as_strided"};
// Views of the same number of elements, which are made of as_strided.
constexpr std::string_view kWhole[] = {
    "aten::t",          "aten::transpose", "aten::permute", "aten::view",    "aten::reshape",
    "aten::unsqueeze",  "aten::squeeze",   "aten::numpy_T", "aten::detach",  "aten::flatten",
    "aten::transpose_", "aten::t_",        "aten::movedim", "aten::swapaxes"};

double Count(const Dims& dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

SizeClass Exactly(double n) { return {n, n}; }

// Result of an op that works element by element.
double Broadcast(const std::vector<Dims>& inputs) {
  Dims result;
  for (const Dims& dims : inputs) {
    if (dims.size() > result.size()) result.insert(result.begin(), dims.size() - result.size(), 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t& d = result[result.size() - dims.size() + i];
      d = std::max(d, dims[i]);
    }
  }
  return Count(result);
}

using Writes = std::optional<std::vector<SizeClass>>;

Writes OfProduct(const OpShape& shape) {
  std::vector<Dims> in = shape.inputs;
  const bool adds = shape.name == "addmm" || shape.name == "baddbmm";
  if (adds && in.size() == 3) in.erase(in.begin());
  if (in.size() < 2) return std::nullopt;
  const Dims &a = in[0], &b = in[1];
  if (shape.name == "bmm" || shape.name == "baddbmm") {
    if (a.size() != 3 || b.size() != 3) return std::nullopt;
    return Writes({Exactly(Count({a[0], a[1], b[2]}))});
  }
  if (a.size() != 2 || b.size() != 2 || (shape.name != "mm" && shape.name != "addmm")) {
    return std::nullopt;
  }
  return Writes({Exactly(Count({a[0], b[1]}))});
}

// The stride is not recorded: images times channels, at most as large as full padding makes it.
Writes OfConvolution(const OpShape& shape, std::string_view kernel) {
  if (shape.inputs.size() < 2) return std::nullopt;
  if (shape.name == "convolution_backward") {
    if (shape.inputs.size() < 3) return std::nullopt;
    const double input = Count(shape.inputs[1]), weight = Count(shape.inputs[2]);
    if (Contains(kernel, "dgrad")) return Writes({Exactly(input)});
    if (Contains(kernel, "wgrad")) return Writes({Exactly(weight)});
    return Writes(
        {Exactly(input), Exactly(weight),
         Exactly(static_cast<double>(shape.inputs[0].size() > 1 ? shape.inputs[0][1] : 1))});
  }
  if (Contains(shape.name, "backward") || Contains(shape.name, "transpose")) return std::nullopt;
  const Dims &in = shape.inputs[0], &weight = shape.inputs[1];
  if (in.size() < 3 || weight.size() != in.size()) return std::nullopt;
  const double unit = static_cast<double>(in[0]) * static_cast<double>(weight[0]);
  double most = unit;
  for (size_t i = 2; i < in.size(); ++i) {
    most *= static_cast<double>(in[i]) + 2 * static_cast<double>(weight[i]);
  }
  return Writes({SizeClass{unit, most}});
}

Writes OfNorm(const OpShape& shape) {
  // Its result and statistics, which are as many as its channels or rows.
  std::vector<SizeClass> writes = {Exactly(shape.largest)};
  const Dims& in = shape.inputs[0];
  if (Contains(shape.name, "batch_norm")) {
    if (in.size() > 1) writes.push_back(Exactly(static_cast<double>(in[1])));
  } else if (!in.empty()) {
    writes.push_back({1, shape.largest / static_cast<double>(std::max<int64_t>(in.back(), 1))});
    writes.push_back(Exactly(static_cast<double>(in.back())));  // gradients of scale and shift
  }
  return writes;
}

// Ops whose result is not as large as their inputs say, whatever kernels they use.
constexpr std::string_view kOtherSizes[] = {"index", "gather",   "scatter",     "cat",    "stack",
                                            "pad",   "repeat",   "arange",      "im2col", "col2im",
                                            "roll",  "upsample", "interpolate", "kron",   "outer"};

Writes WritesOf(const OpShape& shape, KernelClass kind, std::string_view kernel) {
  if (shape.name == "mm" || shape.name == "addmm" || shape.name == "bmm" ||
      shape.name == "baddbmm") {
    return OfProduct(shape);
  }
  if (Contains(shape.name, "convolution") || shape.name.starts_with("conv")) {
    return OfConvolution(shape, kernel);
  }
  if (shape.name == "copy" || shape.name == "zero" || shape.name == "fill") {
    return Writes({Exactly(Count(shape.inputs[0]))});
  }
  if (shape.name == "embedding" && shape.inputs.size() == 2 && shape.inputs[0].size() == 2) {
    return Writes({Exactly(Count(shape.inputs[1]) * static_cast<double>(shape.inputs[0][1]))});
  }
  for (std::string_view other : kOtherSizes) {
    if (Contains(shape.name, other)) return std::nullopt;
  }
  switch (kind) {
    case KernelClass::kElementwise:
      return Writes({Exactly(Broadcast(shape.inputs)), Exactly(shape.largest)});
    case KernelClass::kNorm:
      return OfNorm(shape);
    case KernelClass::kSoftmax:
      return Writes({Exactly(shape.largest), SizeClass{1, shape.largest / 2}});
    case KernelClass::kReduce:
      return Writes({SizeClass{1, shape.largest}});
    default:
      return std::nullopt;
  }
}

}  // namespace

bool SizeClass::Has(double elements) const {
  return elements > 0 && elements <= most && std::fmod(elements, unit) == 0;
}

OpAccesses::OpAccesses(const Graph& graph)
    : graph_(graph), shapes_(graph), classes_(graph), flow_(graph) {
  FindViews();
}

void OpAccesses::FindViews() {
  const std::vector<Scope>& scopes = graph_.tables().scopes;
  absl::flat_hash_map<NameId, bool> parts;
  for (size_t i = 0; i < scopes.size(); ++i) {
    const Scope& s = scopes[i];
    if (s.kind != EventKind::kOp) continue;
    auto [part, fresh] = parts.try_emplace(s.name, false);
    if (fresh) part->second = IsOneOf(graph_.Name(s.name), kParts);
    if (!part->second) continue;
    const bool inner = s.parent.index() < scopes.size();
    if (inner && IsOneOf(graph_.Name(scopes[s.parent.index()].name), kWhole)) continue;
    const OpDetail* detail = graph_.OpOf(ScopeId(i));
    if (detail == nullptr || !detail->shapes.valid()) continue;
    auto shapes = ParseShapes(graph_.Name(detail->shapes));
    if (shapes && !shapes->empty()) viewed_.insert(Count(shapes->front()));
  }
}

bool OpAccesses::Inside(ScopeId inner, ScopeId outer) const {
  const std::vector<Scope>& scopes = graph_.tables().scopes;
  // Most pairs are apart in time.
  if (scopes[inner.index()].begin > scopes[outer.index()].end ||
      scopes[outer.index()].begin > scopes[inner.index()].end) {
    return false;
  }
  for (ScopeId s : ScopesAround(graph_, inner)) {
    if (s == outer) return true;
  }
  return false;
}

std::optional<OpAccess> OpAccesses::Of(TaskId t) {
  const OpShape& shape = shapes_.Of(t);
  if (!shape.known()) return std::nullopt;
  const std::string_view name = graph_.Name(graph_.tables().scopes[shape.scope.index()].name);
  // Functions of the user's own do what they like.
  if (!name.starts_with("aten::")) return std::nullopt;
  Writes writes = WritesOf(shape, classes_.Of(t), graph_.TaskName(t));
  if (!writes) return std::nullopt;
  OpAccess access{.op = shape.scope, .writes = *std::move(writes)};
  for (const Dims& dims : shape.inputs) access.reads.push_back(Count(dims));
  access.part = shape.name == "convolution_backward" && access.writes.size() == 1;
  // Batch norm keeps running statistics in its inputs.
  access.in_place = name.ends_with('_') || Contains(name, "batch_norm") || name.ends_with("_out");
  if (name.ends_with('_')) access.writes.push_back(Exactly(access.reads.front()));
  for (const SizeClass& w : access.writes) {
    access.writes_views |= w.unit == w.most ? viewed_.contains(w.most)
                                            : std::any_of(viewed_.begin(), viewed_.end(),
                                                          [&](double n) { return w.Has(n); });
  }
  for (double n : access.reads) access.reads_views |= viewed_.contains(n);
  return access;
}

bool OpAccesses::Needs(const OpAccess& later, const OpAccess& earlier) {
  if (later.op == earlier.op && later.part && earlier.part) {
    return later.writes.front().most == earlier.writes.front().most;
  }
  if (Inside(later.op, earlier.op) || Inside(earlier.op, later.op)) return true;
  if (!flow_.empty() && flow_.Reads(later.op, earlier.op)) return true;
  // Parts of it may have any size.
  if (earlier.writes_views) return true;
  if (later.reads_views && earlier.in_place) return true;
  if (later.in_place && (later.writes_views || earlier.reads_views)) return true;
  auto meets = [](const OpAccess& writer, const std::vector<double>& reads) {
    return std::any_of(reads.begin(), reads.end(), [&](double n) {
      return std::any_of(writer.writes.begin(), writer.writes.end(),
                         [&](const SizeClass& w) { return w.Has(n); });
    });
  };
  return meets(earlier, later.reads) || (later.in_place && meets(later, earlier.reads));
}

}  // namespace daydream
