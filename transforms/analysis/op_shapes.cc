#include "transforms/analysis/op_shapes.h"

#include "base/text.h"
#include "graph/scopes.h"

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

const OpShape& OpShapes::Of(TaskId t) {
  const ScopeId start = graph_.task(t).scope;
  std::unique_ptr<OpShape>& answer = shapes_[start];
  if (answer != nullptr) return *answer;
  answer = std::make_unique<OpShape>();
  for (ScopeId s : ScopesAround(graph_, start)) {
    const Scope& scope = ScopeAt(graph_, s);
    if (scope.kind != EventKind::kOp) break;
    const OpDetail* detail = graph_.OpOf(s);
    if (detail != nullptr && detail->shapes.valid()) {
      if (auto parsed = ParseShapes(graph_.Name(detail->shapes))) {
        for (Dims& dims : *parsed) {
          const double n = ElementsOf(dims);
          if (n <= 0) continue;
          answer->largest = std::max(answer->largest, n);
          answer->inputs.push_back(std::move(dims));
        }
      }
      if (answer->known()) {
        answer->scope = s;
        answer->name = graph_.Name(scope.name);
        if (answer->name.starts_with("aten::")) answer->name.remove_prefix(6);
        if (answer->name.ends_with('_')) answer->name.remove_suffix(1);
        answer->dtype = ParseDType(detail->types.valid() ? graph_.Name(detail->types) : "");
        break;
      }
    }
  }
  return *answer;
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
