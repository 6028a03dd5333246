#include "trace/join/execution_trace.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "trace/join/execution_nodes.h"

namespace daydream {
namespace {

// Chosen. Of files of the same program 99.7 % and more of the nodes agree, of the same program at
// another batch or with other kernels 53 to 94 %, of other programs 48 % at most (all 20
// recordings and execution traces beside the repository, each with each).
constexpr double kOneProgram = 0.80, kNoDoubt = 0.95;

// Shapes and types of the inputs of one op, as the profiler writes them.
struct Inputs {
  std::string shapes, types;
  friend bool operator==(const Inputs&, const Inputs&) = default;
};

absl::Status NotOne(const std::string& path, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0813",
                     .what = "no shapes can be taken from this file",
                     .where = path,
                     .why = std::move(why),
                     .fix = "an execution trace of the same program: "
                            "torch.profiler.ExecutionTraceObserver"});
}

// The profiler says "float" for "Tensor(float)", and gives no shape to lists of numbers.
Inputs InputsOf(const ExecutionNode& node) {
  const auto shapes = ElementsOf(node.shapes), types = ElementsOf(node.types);
  Inputs inputs{"[", "["};
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::string_view type = i < types.size() ? types[i] : "\"\"";
    const bool tensors = Contains(type, "Tensor");
    constexpr std::string_view kTensor = "\"Tensor(";
    std::string plain(type);
    if (type.starts_with(kTensor) && type.ends_with(")\"")) {
      plain = fmt::format("\"{}\"", type.substr(kTensor.size(), type.size() - kTensor.size() - 2));
    }
    inputs.shapes += fmt::format("{}{}", i == 0 ? "" : ", ", tensors ? shapes[i] : "[]");
    inputs.types += fmt::format("{}{}", i == 0 ? "" : ", ", plain);
  }
  inputs.shapes += "]";
  inputs.types += "]";
  return inputs;
}

// Length of the shortest round that `all` repeats.
size_t RoundOf(const std::vector<Inputs>& all) {
  for (size_t round = 1; round <= all.size() / 2; ++round) {
    if (all.size() % round != 0) continue;
    bool repeats = true;
    for (size_t i = round; repeats && i < all.size(); ++i) repeats = all[i] == all[i - round];
    if (repeats) return round;
  }
  return all.size();
}

bool HasShapes(const Trace& trace, size_t row) {
  const uint32_t detail = trace.detail[row];
  return detail < trace.ops.size() && trace.ops[detail].shapes.valid();
}

// How often a name of the execution trace is in the profile: a fraction in lowest terms.
using Rounds = std::pair<size_t, size_t>;

Rounds Reduced(size_t rows, size_t nodes) {
  const size_t common = std::gcd(rows, nodes);
  return {rows / common, nodes / common};
}

// The number that most nodes have.
Rounds RoundsOf(const std::map<std::string_view, std::vector<Inputs>>& nodes,
                const std::map<std::string_view, std::vector<size_t>>& rows, ShapesFound* found) {
  std::map<Rounds, size_t> counts;
  for (const auto& [name, all] : nodes) {
    found->nodes += all.size();
    const auto there = rows.find(name);
    if (there != rows.end()) counts[Reduced(there->second.size(), all.size())] += all.size();
  }
  Rounds most;
  for (const auto& [rounds, count] : counts) {
    if (count > found->agree) most = rounds, found->agree = count;
  }
  return most;
}

}  // namespace

bool ShapesFound::doubtful() const {
  return static_cast<double>(agree) < kNoDoubt * static_cast<double>(nodes) ||
         (known + matched) * 2 < ops;
}

absl::StatusOr<std::shared_ptr<const Trace>> WithShapesOf(std::shared_ptr<const Trace> trace,
                                                          const std::string& path,
                                                          ShapesFound* found) {
  DD_ASSIGN_OR_RETURN(const ExecutionTrace execution, ReadExecutionTrace(path));
  std::map<std::string_view, std::vector<Inputs>> shapes;
  for (const ExecutionNode& node : execution.nodes) {
    if (!node.shapes.empty()) shapes[node.name].push_back(InputsOf(node));
  }
  if (shapes.empty()) return NotOne(path, "it holds no nodes with shapes of inputs");

  std::map<std::string_view, std::vector<size_t>> rows;  // of the profile, by name
  for (size_t row = 0; row < trace->rows(); ++row) {
    if (trace->kind[row] != EventKind::kOp) continue;
    ++found->ops;
    found->known += HasShapes(*trace, row);
    rows[trace->EventName(row)].push_back(row);
  }
  const Rounds rounds = RoundsOf(shapes, rows, found);
  if (static_cast<double>(found->agree) < kOneProgram * static_cast<double>(found->nodes)) {
    return NotOne(path, fmt::format("it is of another program: {} of its {} nodes are in the "
                                    "profile equally often, others more or less often",
                                    found->agree, found->nodes));
  }
  auto with = std::make_shared<Trace>(*trace);
  std::map<std::pair<uint32_t, NameId>, uint32_t> details;
  for (auto& [name, places] : rows) {
    auto it = shapes.find(name);
    if (it == shapes.end() || Reduced(places.size(), it->second.size()) != rounds) continue;
    const size_t round = RoundOf(it->second);
    if (places.size() % round != 0) continue;
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t a, size_t b) { return trace->start[a] < trace->start[b]; });
    for (size_t i = 0; i < places.size(); ++i) {
      if (HasShapes(*trace, places[i])) continue;
      const Inputs& inputs = it->second[i % round];
      const uint32_t old = trace->detail[places[i]];
      const NameId shape = with->names->Intern(inputs.shapes);
      auto [detail, inserted] =
          details.try_emplace({old, shape}, static_cast<uint32_t>(with->ops.size()));
      if (inserted) {
        OpDetail op = old < trace->ops.size() ? trace->ops[old] : OpDetail{};
        op.shapes = shape;
        op.types = with->names->Intern(inputs.types);
        with->ops.push_back(op);
      }
      with->detail[places[i]] = detail->second;
      ++found->matched;
    }
  }
  if (found->matched == 0) {
    return NotOne(path, found->known == found->ops
                            ? "every op of the profile has its shapes already"
                            : "none of its ops is in the profile in whole rounds");
  }
  return std::shared_ptr<const Trace>(std::move(with));
}

}  // namespace daydream
