#include "transforms/analysis/batch_sizes.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include <fmt/format.h>

#include "base/text.h"
#include "graph/scopes.h"

namespace daydream {
namespace {

bool IsOneOf(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool IsBackward(std::string_view op) { return Contains(op, "backward"); }

// Losses of single examples, and those of classes, which are of examples or of tokens.
bool IsExampleLoss(std::string_view op) {
  return IsOneOf(op, {"binary_cross_entropy", "binary_cross_entropy_with_logits", "l1_loss",
                      "mse_loss", "smooth_l1_loss", "huber_loss"});
}
bool IsClassLoss(std::string_view op) {
  return IsOneOf(op, {"cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss_forward"});
}

constexpr std::array<std::string_view, 3> kToldBy = {
    "first size of what convolutions and batch norms read",
    "first size of what embeddings, row norms and linear layers read",
    "rows of what linear layers read, examples or tokens"};

// The size that most tell; 0 = none. `most`: by how many.
int64_t MostTold(const std::map<int64_t, uint64_t>& votes, uint64_t* most) {
  int64_t told = 0;
  *most = 0;
  for (const auto& [size, count] : votes) {
    if (count > *most) told = size, *most = count;
  }
  return told;
}

// Ops that are run on parameters as often as on activations: copies and casts of weights, filling
// and adding up of gradients.
bool MovesParameters(std::string_view op) {
  return IsOneOf(op, {"copy", "to", "clone", "contiguous", "fill", "zero", "add", "t", "transpose",
                      "detach", "cat", "norm", "mul", "div"});
}

// Where products have their two factors among the inputs.
std::optional<size_t> FirstFactor(std::string_view op, size_t inputs) {
  if (IsOneOf(op, {"mm", "bmm", "matmul", "mv", "_scaled_mm", "_int_mm"}) && inputs >= 2) return 0;
  if (IsOneOf(op, {"addmm", "baddbmm", "addmv", "_addmm_activation"}) && inputs >= 3) return 1;
  return std::nullopt;
}

}  // namespace

bool IsConvolution(std::string_view op) { return Contains(op, "conv") && !Contains(op, "convert"); }

int64_t ScaledSize(int64_t size, double factor) {
  if (factor == 1) return size;
  return std::max<int64_t>(1, Duration::Ns(size).Scaled(factor).ns);
}

BatchSizes::BatchSizes(const Graph& graph, OpShapes& shapes) {
  // Ops that are equal have their inputs in common, and are read once.
  struct Equal {
    OpShape shape;
    Phase phase = Phase::kNone;
    uint64_t times = 0;
  };
  std::vector<Equal> read;
  absl::flat_hash_map<std::pair<const Dims*, Phase>, size_t> known;  // places in it
  absl::flat_hash_map<NameId, OpAround> names;
  std::vector<bool> seen(graph.tables().scopes.size()), around(seen.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.removed || task.kind != TaskKind::kKernel) continue;
    const OpShape shape = shapes.Of(TaskId(i));
    if (!shape.known() || seen[shape.scope.index()]) continue;
    seen[shape.scope.index()] = true;
    const auto [it, is_new] = known.try_emplace({&shape.inputs.front(), task.phase}, read.size());
    if (is_new) read.push_back({shape, task.phase});
    ++read[it->second].times;
    if (task.phase != Phase::kBackward) ReadAround(graph, shape.scope, around, names);
  }
  for (const Equal& op : read) Read(op.shape.name, op.shape.inputs, op.phase, op.times);
  CountVotes();
}

// Losses and embeddings run kernels by other ops, so they are around the ops that are read.
void BatchSizes::ReadAround(const Graph& graph, ScopeId scope, std::vector<bool>& seen,
                            absl::flat_hash_map<NameId, OpAround>& names) {
  for (ScopeId s : ScopesAround(graph, scope)) {
    if (ScopeAt(graph, s).kind != EventKind::kOp || seen[s.index()]) return;
    seen[s.index()] = true;
    const auto [known, is_new] = names.try_emplace(ScopeAt(graph, s).name);
    OpAround& as = known->second;
    if (is_new) {
      std::string_view name = graph.Name(ScopeAt(graph, s).name);
      if (name.starts_with("aten::")) name.remove_prefix(6);
      as.embeds = Contains(name, "embedding"), as.loss = IsExampleLoss(name);
      as.counts = name == "embedding" || as.loss || IsClassLoss(name);
    }
    embeds_ |= as.embeds;
    if (!as.counts) continue;
    const OpDetail* op = graph.OpOf(s);
    if (op == nullptr || !op->shapes.valid()) continue;
    const auto inputs = ParseShapes(graph.Name(op->shapes));
    const size_t examples = as.embeds ? 1 : 0;  // behind the table
    if (!inputs || inputs->size() <= examples) continue;
    const Dims& dims = (*inputs)[examples];
    if (dims.size() <= examples) continue;  // a list of words is no list of sequences
    ++(as.embeds ? sequences_ : as.loss ? losses_ : class_losses_)[dims[0]];
  }
}

void BatchSizes::AddParameter(Dims dims) {
  if (dims.size() == 2) parameters_.insert({dims[1], dims[0]});
  parameters_.insert(std::move(dims));
}

void BatchSizes::Read(std::string_view op, const std::vector<Dims>& inputs, Phase phase,
                      uint64_t times) {
  if (phase == Phase::kOptimizer) {
    for (const Dims& dims : inputs) AddParameter(dims);
    return;
  }
  if (IsBackward(op)) return;
  // What is enlarged may be one of many parts of an example.
  const bool enlarges = Contains(op, "transpose");
  if (IsConvolution(op) && !enlarges && inputs.size() >= 2 && inputs[0].size() >= 3) {
    votes_[kImages][inputs[0][0]] += times;
    for (size_t i = 1; i < inputs.size(); ++i) AddParameter(inputs[i]);
  } else if (Contains(op, "norm") && inputs.size() >= 2 && inputs[0].size() >= 2) {
    votes_[Contains(op, "batch_norm") ? kImages : kTokens][inputs[0][0]] += times;
    for (size_t i = 1; i < inputs.size(); ++i) AddParameter(inputs[i]);
  } else if (Contains(op, "embedding") && !Contains(op, "grad") && inputs.size() >= 2) {
    // Bags are of any length, and libraries pass tables of their own besides.
    if (op == "embedding") votes_[kTokens][inputs[1][0]] += times;
    AddParameter(inputs[0]);
  } else if (op == "linear" && inputs.size() >= 2) {
    votes_[inputs[0].size() > 2 ? kTokens : kRows][inputs[0][0]] += times;
    for (size_t i = 1; i < inputs.size(); ++i) AddParameter(inputs[i]);
  } else if (const auto at = FirstFactor(op, inputs.size());
             at && phase != Phase::kBackward && inputs[*at].size() == 2) {
    votes_[kRows][inputs[*at][0]] += times;
    rows_.insert(inputs[*at][0]);
    AddParameter(inputs[*at + 1]);
    if (*at == 1) AddParameter(inputs[0]);
  }
}

void BatchSizes::CountVotes() {
  for (const Vote kind : {kImages, kTokens, kRows}) {
    uint64_t most = 0;
    const int64_t told = MostTold(votes_[kind], &most);
    if (most == 0) continue;
    batch_ = told;
    told_by_ = kToldBy[kind];
    by_rows_ = kind == kRows;
    FindExamples(kind);
    return;
  }
}

void BatchSizes::FindExamples(Vote told) {
  // Without words there are no tokens whose classes a loss compares.
  Votes sure = told == kImages ? votes_[kImages] : sequences_;
  const auto add = [&](const Votes& more) {
    for (const auto& [size, count] : more) sure[size] += count;
  };
  if (told != kImages) {
    add(losses_);
    if (told == kRows && !embeds_) add(class_losses_);
  }
  // Positions are [1, length] where words are [batch, length].
  if (sure.size() > 1) sure.erase(1);
  uint64_t most = 0, all = 0;
  const int64_t size = MostTold(sure, &most);
  for (const auto& [other, count] : sure) all += count;
  if (2 * most <= all) return;
  // 1 is what shapes begin with that have no batch: not while anything says another number.
  if (size == 1) {
    for (const Votes* votes : {&votes_[kImages], &votes_[kTokens], &losses_}) {
      if (!votes->empty() && votes->rbegin()->first > 1) return;
    }
  }
  const bool as_told = size == batch_;
  batch_ = examples_ = size;
  by_rows_ = false;
  if (as_told && told != kRows) return;
  told_by_ = sequences_.empty() ? "first size of what losses and linear layers read"
                                : "first size of the words that embeddings read";
}

std::string BatchSizes::Candidates() const {
  std::string out;
  for (const Vote kind : {kImages, kTokens, kRows}) {
    uint64_t most = 0;
    const int64_t told = MostTold(votes_[kind], &most);
    if (most > 0) out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", told, kToldBy[kind]);
  }
  return out;
}

void BatchSizes::SetExamples(int64_t examples) {
  if (examples_ == 0 || examples % examples_ != 0) {
    batch_ = examples;
    by_rows_ = false;
  }
  examples_ = examples;
  told_by_ = "as given";
}

int BatchSizes::BatchAxis(const Dims& dims) const {
  // Rows may be tokens, of which only linear layers have as many: take the first size everywhere.
  if (batch_ <= 1 || by_rows_) return dims.empty() ? -1 : 0;
  const auto equal = std::find(dims.begin(), dims.end(), batch_);
  if (equal != dims.end()) return static_cast<int>(equal - dims.begin());
  const auto multiple =
      std::find_if(dims.begin(), dims.end(), [&](int64_t d) { return HoldsBatch(d); });
  return multiple == dims.end() ? -1 : static_cast<int>(multiple - dims.begin());
}

bool BatchSizes::IsWeightGradient(const Dims& a, const Dims& b, Phase phase) const {
  return phase == Phase::kBackward && a.size() == 2 && b.size() == 2 && IsParameter({a[0], b[1]}) &&
         (rows_.contains(a[1]) || HoldsBatch(a[1]));
}

// The rows of what a layer reads grow.
bool BatchSizes::ScaleMatrices(Dims& a, Dims& b, Phase phase, double factor) const {
  if (IsWeightGradient(a, b, phase)) {
    a[1] = b[0] = ScaledSize(a[1], factor);
    return true;
  }
  if (batch_ > 1 && !rows_.contains(a[0]) && !HoldsBatch(a[0])) return false;
  a[0] = ScaledSize(a[0], factor);
  return true;
}

bool BatchSizes::ScaleProduct(std::string_view op, std::vector<Dims>& inputs, Phase phase,
                              double factor) const {
  const size_t at = *FirstFactor(op, inputs.size());
  Dims &a = inputs[at], &b = inputs[at + 1];
  if (a.size() == 2 && b.size() == 2) {
    if (!ScaleMatrices(a, b, phase, factor)) return false;
    if (at == 1 && inputs[0].size() == 2) inputs[0] = {a[0], b[1]};
    return true;
  }
  // Many products: their number holds the batch, else their rows do.
  if (a.empty()) return false;
  const int axis = a.size() >= 3 && batch_ > 1 && !HoldsBatch(a[0]) ? BatchAxis(a) : 0;
  if (axis < 0) return false;
  const auto i = static_cast<size_t>(axis);
  a[i] = ScaledSize(a[i], factor);
  if (i == 0 && b.size() >= 3) b[0] = ScaledSize(b[0], factor);
  if (at == 1 && i < inputs[0].size()) inputs[0][i] = ScaledSize(inputs[0][i], factor);
  return true;
}

std::optional<std::vector<Dims>> BatchSizes::Scaled(std::string_view op,
                                                    const std::vector<Dims>& inputs, Phase phase,
                                                    double factor) const {
  if (phase == Phase::kOptimizer || inputs.empty()) return std::nullopt;
  std::vector<Dims> scaled = inputs;
  if (FirstFactor(op, inputs.size())) {
    if (!ScaleProduct(op, scaled, phase, factor)) return std::nullopt;
    return scaled;
  }
  const auto largest =
      std::max_element(inputs.begin(), inputs.end(), [](const Dims& a, const Dims& b) {
        double na = 1, nb = 1;
        for (int64_t d : a) na *= static_cast<double>(d);
        for (int64_t d : b) nb *= static_cast<double>(d);
        return na < nb;
      });
  // The weights of a convolution may be larger than what it reads.
  const bool keeps_weights = IsConvolution(op);
  if (!keeps_weights && IsParameter(*largest) && (MovesParameters(op) || BatchAxis(*largest) < 0)) {
    return std::nullopt;
  }
  bool any = false;
  for (Dims& dims : scaled) {
    // Another input may look like a parameter by chance; the largest decides that it is none.
    const bool parameter = IsParameter(dims) && (keeps_weights || dims != *largest);
    const int axis = parameter ? -1 : BatchAxis(dims);
    if (axis < 0) continue;
    const auto i = static_cast<size_t>(axis);
    dims[i] = ScaledSize(dims[i], factor);
    any = true;
  }
  return any ? std::optional(std::move(scaled)) : std::nullopt;
}

}  // namespace daydream
