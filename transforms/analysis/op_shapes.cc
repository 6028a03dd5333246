#include "transforms/analysis/op_shapes.h"

#include "base/text.h"
#include "graph/facts.h"

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/ranges.h>

namespace daydream {

double ElementsOf(const Dims& dims) {
  double n = dims.empty() ? 0 : 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

namespace {

using Shapes = OpsAround<OpShape>;

// Null: no sizes are known.
std::unique_ptr<const OpShape> ShapeOf(const Graph& graph, NameId name, const OpDetail& op) {
  auto parsed = ParseShapes(graph.Name(op.shapes));
  if (!parsed) return nullptr;
  OpShape found;
  std::vector<Dims> inputs;
  for (Dims& dims : *parsed) {
    const double n = ElementsOf(dims);
    if (n <= 0) continue;
    found.largest = std::max(found.largest, n);
    inputs.push_back(std::move(dims));
  }
  if (!found.known()) return nullptr;
  found.inputs = SharedDims(std::move(inputs));
  found.name = graph.Name(name);
  if (found.name.starts_with("aten::")) found.name.remove_prefix(6);
  if (found.name.ends_with('_')) found.name.remove_suffix(1);
  found.dtype = ParseDType(op.types.valid() ? graph.Name(op.types) : "");
  return std::make_unique<const OpShape>(std::move(found));
}

}  // namespace

OpShapes::OpShapes(const Graph& graph)
    : graph_(graph),
      recorded_(FactOfTables<Shapes>(graph, [&] { return Shapes(graph.tables().scopes.size()); })) {
}

OpShape OpShapes::Of(TaskId t) {
  if (graph_.reshaped() && reshaped_ == nullptr) {
    reshaped_ = std::make_unique<Shapes>(graph_.tables().scopes.size());
  }
  const Shapes& shapes = graph_.reshaped() ? *reshaped_ : *recorded_;
  const auto found = shapes.Of(graph_, graph_.task(t).scope, [&](NameId name, const OpDetail& op) {
    return ShapeOf(graph_, name, op);
  });
  if (found.fact == nullptr) return {};
  OpShape shape = *found.fact;
  shape.scope = found.scope;
  return shape;
}

void SetInputs(Graph& graph, ScopeId scope, const std::vector<Dims>& inputs) {
  auto all = ParseShapes(graph.Name(graph.OpOf(scope)->shapes));
  if (!all) return;
  size_t next = 0;
  for (Dims& dims : *all) {
    if (ElementsOf(dims) > 0 && next < inputs.size()) dims = inputs[next++];
  }
  std::string text;
  for (const Dims& dims : *all) {
    text += fmt::format("{}[{}]", text.empty() ? "" : ", ", fmt::join(dims, ", "));
  }
  graph.SetShapes(scope, graph.AddName(fmt::format("[{}]", text)));
}

FusionNode NodeOf(const OpShape& shape, KernelClass kind) {
  FusionNode node;
  if (!shape.known()) return node;
  const bool rows = kind == KernelClass::kNorm || kind == KernelClass::kSoftmax;
  node.kind = rows ? FusionNode::Kind::kRows : FusionNode::Kind::kPointwise;
  node.output = shape.largest;
  for (const Dims& dims : shape.inputs) node.inputs.push_back(ElementsOf(dims));
  if (rows) {
    // Batch norm reads its input for the statistics and again for the result.
    const bool twice = Contains(shape.name, "batch_norm");
    const bool backward = Contains(shape.name, "backward");
    node.passes = (twice ? 3 : 2) + (backward ? 2 : 0);
  }
  return node;
}

}  // namespace daydream
