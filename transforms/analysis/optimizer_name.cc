#include "transforms/analysis/optimizer_name.h"

namespace daydream {

std::string OptimizerName(const Graph& graph) {
  constexpr std::string_view kBefore = "Optimizer.step#", kBehind = ".step";
  for (const Scope& scope : graph.tables().scopes) {
    std::string_view name = graph.Name(scope.name);
    if (!name.starts_with(kBefore)) continue;
    name.remove_prefix(kBefore.size());
    if (name.ends_with(kBehind)) name.remove_suffix(kBehind.size());
    if (!name.empty()) return std::string(name);
  }
  return "";
}

}  // namespace daydream
