#include "transforms/parallel/norm_buffers.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "costmodel/op_shape.h"
#include "graph/scopes.h"

namespace daydream {
namespace {

constexpr std::string_view kNorm = "aten::batch_norm";
// Places of its arguments: input, weight, bias, running_mean, running_var.
constexpr size_t kMean = 3, kVariance = 4;
// Statistics are kept in fp32 whatever the input is; a counter is one int64.
constexpr double kStatisticBytes = 4, kCounterBytes = 8;

double StatisticsOf(std::string_view shapes) {
  const auto dims = ParseShapes(shapes);
  if (!dims.has_value() || dims->size() <= kVariance) return 0;
  double elements = 0;
  for (size_t i : {kMean, kVariance}) {
    if ((*dims)[i].size() == 1) elements += static_cast<double>((*dims)[i][0]);
  }
  return elements * kStatisticBytes;
}

}  // namespace

std::vector<NormBuffers> FindNormBuffers(const Graph& graph) {
  std::vector<NormBuffers> steps(std::max<size_t>(graph.steps().size(), 1));
  absl::flat_hash_map<ScopeId, bool> counted;
  for (const Task& task : graph.tasks()) {
    if (!IsHost(task.kind) || task.phase != Phase::kForward || task.copy != 0) continue;
    for (ScopeId s : ScopesAround(graph, task.scope)) {
      if (graph.Name(ScopeAt(graph, s).name) != kNorm) continue;
      const OpDetail* op = graph.OpOf(s);
      if (op == nullptr || !op->shapes.valid() || !counted.try_emplace(s, true).second) break;
      const double bytes = StatisticsOf(graph.Name(op->shapes));
      if (bytes <= 0 || task.step >= steps.size()) break;
      steps[task.step].statistics += bytes;
      steps[task.step].counters += kCounterBytes;
      break;
    }
  }
  return steps;
}

}  // namespace daydream
