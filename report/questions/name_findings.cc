#include "report/questions/name_findings.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "costmodel/kernel_class.h"
#include "report/text/format.h"

namespace daydream {
namespace {

// Chosen: few kernels may be alike. In the recordings beside the repository no kernel that
// multiplies belongs to an operator that does not, and no recording of five operators or more has
// one name for all kernels.
constexpr size_t kKernelsOfOneName = 50, kOpsOfOneName = 5, kWrongNames = 10;

// What PyTorch's operators of these names do to each element by itself, in place (with "_" behind)
// or not: none of them calls a library that multiplies matrices.
constexpr std::string_view kPointwise[] = {
    "abs",   "add",     "addcdiv", "addcmul", "clamp", "clamp_min",  "copy",
    "div",   "dropout", "exp",     "fill",    "gelu",  "hardtanh",   "leaky_relu",
    "lerp",  "log",     "mul",     "neg",     "pow",   "reciprocal", "relu",
    "rsqrt", "sigmoid", "silu",    "sqrt",    "sub",   "tanh",       "threshold_backward",
    "where", "zero"};

bool IsPointwise(std::string_view op) {
  constexpr std::string_view kNamespace = "aten::";
  if (!op.starts_with(kNamespace)) return false;
  op.remove_prefix(kNamespace.size());
  if (op.ends_with('_')) op.remove_suffix(1);
  return std::ranges::find(kPointwise, op) != std::ranges::end(kPointwise);
}

class NameFindings {
 public:
  explicit NameFindings(const Graph& graph) : graph_(graph) {
    absl::flat_hash_map<NameId, bool> pointwise, multiplies;
    for (const Edge& e : graph.edges()) {
      const Task& kernel = graph.task(e.to);
      if (e.rule != Rule::kLaunch || kernel.kind != TaskKind::kKernel) continue;
      ++kernels_;
      names_.insert(kernel.name);
      const Scope* op = graph.ScopeOf(e.from);
      if (op == nullptr || op->kind != EventKind::kOp) continue;
      ops_.insert(op->name);
      const auto [simple, fresh_op] = pointwise.try_emplace(op->name, false);
      if (fresh_op) simple->second = IsPointwise(graph.Name(op->name));
      if (!simple->second) continue;
      ++of_simple_;
      const auto [product, fresh] = multiplies.try_emplace(kernel.name, false);
      if (fresh) product->second = Multiplies(ClassifyKernel(graph.Name(kernel.name)).kind);
      if (!product->second) continue;
      if (wrong_++ == 0) example_ = {op->name, kernel.name};
    }
  }

  std::vector<Finding> Run() const {
    std::vector<Finding> out;
    const auto add = [&](FindingKind kind, std::string text, double share) {
      out.push_back({.kind = kind,
                     .about = About::kPredictions,
                     .text = std::move(text),
                     .where = {},
                     .time = {},
                     .share = share,
                     .fix = "use the file as it was recorded; without true names nothing is known "
                            "of what kernels do"});
    };
    if (names_.size() == 1 && kernels_ >= kKernelsOfOneName && ops_.size() >= kOpsOfOneName) {
      add(FindingKind::kLost,
          fmt::format("all {} kernels have one name ({}), and {} kinds of operators launched them: "
                      "what each of them does is not known",
                      FormatCount(kernels_), Printable(graph_.Name(*names_.begin())), ops_.size()),
          1);
    }
    if (of_simple_ >= kWrongNames && wrong_ * kWrongNames >= of_simple_) {
      add(FindingKind::kWrongLaunch,
          fmt::format("{} of {} kernels of operators that work element by element multiply "
                      "matrices by their names, as {} of {}: names or launches are mixed up",
                      FormatCount(wrong_), FormatCount(of_simple_),
                      Printable(graph_.Name(example_.second)),
                      Printable(graph_.Name(example_.first))),
          static_cast<double>(wrong_) / static_cast<double>(of_simple_));
    }
    return out;
  }

 private:
  const Graph& graph_;
  size_t kernels_ = 0, of_simple_ = 0, wrong_ = 0;
  absl::flat_hash_set<NameId> names_, ops_;
  std::pair<NameId, NameId> example_;  // an operator and its kernel
};

}  // namespace

std::vector<Finding> FindingsOfNames(const Graph& graph) { return NameFindings(graph).Run(); }

}  // namespace daydream
