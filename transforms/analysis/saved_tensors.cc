#include "transforms/analysis/saved_tensors.h"

#include "base/text.h"
#include "graph/scopes.h"
#include "transforms/analysis/data_flow.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace daydream {
namespace {

bool KeepsItsSize(Keeps keeps, std::string_view op) {
  if (op.find("conv") != op.npos || op.find("pool") != op.npos) return false;
  if (keeps == Keeps::kOperands) return op == "mul" || op == "div";
  if (keeps != Keeps::kNothing) return true;
  constexpr std::string_view kSame[] = {"add",        "sub",   "rsub", "neg",
                                        "copy",       "clone", "to",   "_to_copy",
                                        "contiguous", "fill",  "zero", "masked_fill"};
  return std::find(std::begin(kSame), std::end(kSame), op) != std::end(kSame);
}

// Which inputs of a product are weights: of a linear layer, the matrix on the right. Products of
// three dimensions multiply activations.
bool IsWeight(const OpShape& shape, size_t input) {
  const Dims& dims = shape.inputs[input];
  if (shape.name.find("conv") != shape.name.npos) return input >= 1;
  if (shape.name.find("norm") != shape.name.npos) return input >= 1 && dims.size() == 1;
  if (shape.name == "addmm") return input != 1;
  if (shape.name == "mm") return input == 1;
  if (shape.name == "linear") return input >= 1;
  if (shape.name == "embedding") return input == 0;
  return false;
}

constexpr size_t kNobody = SIZE_MAX;

// A tensor that an op keeps.
struct KeptTensor {
  double bytes = 0;
  size_t maker = kNobody;  // row of the op whose result it is, as far as that is known
};

// Follows the tensors of one pass.
class Pass {
 public:
  // What the op of this row adds to what is kept. `makers`: rows whose results it is known to read.
  // `reads`: rows whose tensors it needs as well.
  std::vector<KeptTensor> Keep(const OpShape& shape, Keeps keeps, double elements, size_t row,
                               std::vector<size_t> makers, std::vector<size_t>& reads) {
    makers_ = std::move(makers);
    const double width = DTypeBytes(shape.dtype);
    std::vector<KeptTensor> kept;
    std::vector<double> taken;  // sizes of the operands so far: another of the same size is another
    auto keep_input = [&](double n) {
      const bool again = std::find(taken.begin(), taken.end(), n) != taken.end();
      taken.push_back(n);
      Tensor& tensor = Find(n);
      if (tensor.kept && !again) {
        reads.push_back(tensor.keeper);
        return;
      }
      kept.push_back({n * width, again ? kNobody : tensor.maker});
      tensor = {.kept = true, .keeper = row, .maker = tensor.maker};
    };
    if (keeps == Keeps::kInput) keep_input(elements);
    if (keeps == Keeps::kOperands) {
      size_t operands = 0;
      for (const Dims& d : shape.inputs) operands += d.empty() ? 0 : 1;
      for (size_t i = 0; i < shape.inputs.size(); ++i) {
        const bool pointwise = shape.name == "mul" || shape.name == "div";
        if (pointwise && operands < 2) break;  // by a number
        if (!IsWeight(shape, i)) keep_input(ElementsOf(shape.inputs[i]));
      }
    }
    if (keeps == Keeps::kAttention) {
      for (size_t i = 0; i < std::min<size_t>(shape.inputs.size(), 3); ++i) {
        keep_input(ElementsOf(shape.inputs[i]));
      }
      kept.push_back({ElementsOf(shape.inputs.front()) * width, row});
    }
    if (keeps == Keeps::kMask) kept.push_back({elements, row});
    Leave(shape, elements, keeps, row);
    if (keeps == Keeps::kResult) kept.push_back({elements * width, row});
    return kept;
  }

 private:
  struct Tensor {
    bool kept = false;
    size_t keeper = 0;  // row of the op that kept it first
    size_t maker = kNobody;
  };

  // The tensor with `n` elements of an op that is known to have made it, else of the op before, or
  // the latest one of this size.
  Tensor& Find(double n) {
    size_t maker = TakeMaker(n);
    if (maker == kNobody && open_) maker = before_;
    if (maker == before_) open_ = false;
    if (maker != kNobody) {
      latest_[n] = maker;
    } else if (const auto latest = latest_.find(n); latest != latest_.end()) {
      maker = latest->second;
    }
    Tensor& tensor = tensors_[{maker, n}];
    tensor.maker = maker;
    return tensor;
  }

  // One of the known makers, if its result may have `n` elements; each is taken once.
  size_t TakeMaker(double n) {
    for (const bool sure : {true, false}) {
      for (size_t& maker : makers_) {
        const bool sized = sizes_.contains(maker);
        if (maker == kNobody || sized != sure || (sized && sizes_[maker] != n)) continue;
        return std::exchange(maker, kNobody);
      }
    }
    return kNobody;
  }

  void Leave(const OpShape& shape, double elements, Keeps keeps, size_t row) {
    open_ = !KeepsItsSize(keeps, shape.name);
    before_ = row;
    if (open_) return;
    const bool kept = keeps == Keeps::kResult || keeps == Keeps::kAttention;
    sizes_[row] = elements;
    latest_[elements] = row;
    tensors_[{row, elements}] = {.kept = kept, .keeper = row, .maker = row};
  }

  absl::flat_hash_map<std::pair<size_t, double>, Tensor> tensors_;  // by maker and elements
  absl::flat_hash_map<double, size_t> latest_;                      // maker by elements
  absl::flat_hash_map<size_t, double> sizes_;  // elements of results, where they are known
  std::vector<size_t> makers_;                 // of the op at hand, those not taken yet
  bool open_ = true;  // the op before made a tensor whose size is not known
  size_t before_ = kNobody;
};

double WorkedOn(const OpShape& shape, Keeps keeps) {
  if (shape.name == "embedding" && shape.inputs.size() > 1) return ElementsOf(shape.inputs[1]);
  const bool pointwise = keeps == Keeps::kNothing || shape.name == "mul";
  if (pointwise) return shape.largest;
  for (size_t i = 0; i < shape.inputs.size(); ++i) {
    if (!IsWeight(shape, i)) return ElementsOf(shape.inputs[i]);
  }
  return shape.largest;
}

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph), shapes_(graph), flow_(graph) {
    trains_.assign(graph.steps().size() + 1, false);
    for (const Task& t : graph.tasks()) {
      if (IsWork(t) && t.phase == Phase::kBackward) trains_[StepOf(t)] = true;
      most_ += IsWork(t) && t.phase == Phase::kForward ? 1 : 0;
    }
  }

  std::vector<ForwardOp> Run() {
    ops_.reserve(most_);  // pages behind the last op are never touched
    VisitAll();
    LeaveOut();
    return std::move(ops_);
  }

  // Tells of one op after the other, where nothing is asked of those before it.
  bool Tell(absl::FunctionRef<void(const ForwardOp&)> each) {
    if (std::ranges::find(trains_, true) != trains_.end()) return false;
    each_ = &each;
    VisitAll();
    if (!ops_.empty()) each(ops_.back());
    return true;
  }

 private:
  void VisitAll() {
    for (const GraphLane& lane : graph_.lanes()) {
      if (lane.lane.kind != LaneKind::kStream) continue;
      step_ = SIZE_MAX;
      for (TaskId t = lane.first; t.valid(); t = graph_.task(t).lane_next) Visit(t);
    }
  }

  static bool IsWork(const Task& t) {
    return (!t.removed || t.merged) && t.kind == TaskKind::kKernel;
  }
  size_t StepOf(const Task& t) const { return std::min<size_t>(t.step, trains_.size() - 1); }

  void Visit(TaskId t) {
    const Task& task = graph_.task(t);
    if (!IsWork(task)) return;
    if (task.step != step_) BeginPass(task.step, 0);
    if (task.phase == Phase::kBackward) Meet(t, task);
    if (task.phase != Phase::kForward) return;
    // A few forward kernels among the backward ones are no new pass.
    if (backward_ > forward_ / 2) BeginPass(task.step, pass_number_ + 1);
    ++forward_;
    Take(t, task);
  }

  void BeginPass(uint16_t step, size_t number) {
    pass_ = Pass();
    step_ = step;
    pass_number_ = static_cast<uint16_t>(number);
    forward_ = backward_ = 0;
    open_scope_ = ScopeId::None();
    waiting_.clear();
  }

  // The first backward kernel of a layer belongs to all forward ops of the layer in this pass. Of a
  // layer that was repeated, the last copy runs backward first.
  void Meet(TaskId t, const Task& task) {
    ++backward_;
    ++order_;
    auto it = waiting_.find(task.layer);
    if (!task.layer.valid() || it == waiting_.end()) return;
    Waiting& waiting = it->second;
    if (waiting.met.valid() && graph_.task(waiting.met).copy == task.copy) return;
    waiting.met = t;
    const uint16_t copy = ops_[waiting.rows.back()].copy;
    std::erase_if(waiting.rows, [&](size_t i) {
      if (ops_[i].copy != copy) return false;
      ops_[i].backward = t;
      ops_[i].backward_order = order_;
      return true;
    });
    if (waiting.rows.empty()) waiting_.erase(it);
  }

  void Take(TaskId t, const Task& task) {
    const OpShape& shape = shapes_.Of(t);
    const ScopeId scope = shape.known() ? shape.scope : task.scope;
    // Without recorded ops the range of a step is around all of them: the layer tells.
    const bool same = scope.valid() && scope == open_scope_ && ops_.back().layer == task.layer;
    if (same && ops_.back().copy == task.copy) {
      ops_.back().last = t;
      return;
    }
    open_scope_ = scope;
    ForwardOp op{.shape = shape,
                 .first = t,
                 .last = t,
                 .layer = task.layer,
                 .step = task.step,
                 .pass = pass_number_,
                 .copy = task.copy};
    const bool trains = trains_[StepOf(task)];
    if (shape.known()) {
      op.change = graph_.model_changes().Of(shape.scope);
      const auto [known, is_new] = by_name_.try_emplace(shape.name);
      if (is_new) known->second.keeps = KeptBy(shape.name, &known->second.recognised);
      op.keeps = known->second.keeps, op.recognised = known->second.recognised;
      op.elements = WorkedOn(shape, op.keeps);
      const double width = DTypeBytes(shape.dtype);
      for (size_t i = 0; i < shape.inputs.size(); ++i) {
        if (IsWeight(shape, i)) op.weights += ElementsOf(shape.inputs[i]) * width;
      }
      if (trains) Keep(op);
    }
    if (trains) waiting_[task.layer].rows.push_back(ops_.size());
    if (shape.known() && !flow_.empty()) NoteMaker(shape.scope);
    if (each_ != nullptr && !ops_.empty()) {
      (*each_)(ops_.back());
      ops_.clear();
    }
    ops_.push_back(std::move(op));
  }

  // The op at hand is the last one so far in each op around it.
  void NoteMaker(ScopeId scope) {
    for (ScopeId s : ScopesAround(graph_, scope)) {
      if (ScopeAt(graph_, s).kind != EventKind::kOp) break;
      made_by_[s] = ops_.size();
    }
  }

  // Rows of the ops whose results an op reads, as far as the trace says.
  std::vector<size_t> MakersOf(ScopeId reader) {
    std::vector<size_t> makers;
    for (ScopeId source : flow_.Sources(reader)) {
      for (ScopeId s : ScopesAround(graph_, source)) {
        const auto made = made_by_.find(s);
        if (made == made_by_.end()) continue;
        if (s == source || ops_[made->second].shape.scope == s) makers.push_back(made->second);
        break;
      }
    }
    return makers;
  }

  void Keep(ForwardOp& op) {
    const double width = op.change != nullptr ? op.change->width : 1;
    for (const KeptTensor& tensor : pass_.Keep(op.shape, op.keeps, op.elements, ops_.size(),
                                               MakersOf(op.shape.scope), op.reads)) {
      op.needed += tensor.bytes * width;
      if (GroupOf(op) != 0 && op.change->between < 1) {
        between_.push_back({ops_.size(), {tensor.bytes * width, tensor.maker}});
      }
    }
    op.kept = op.needed * (op.change != nullptr ? op.change->kept : 1);
  }

  static uint32_t GroupOf(const ForwardOp& op) {
    return op.change != nullptr ? op.change->group : 0;
  }

  // What passes between ops that one kernel does, and that nobody else needs, is made again.
  void LeaveOut() {
    if (between_.empty()) return;
    std::vector<bool> needed(ops_.size(), false);  // by an op of another kernel
    for (const ForwardOp& op : ops_) {
      for (size_t keeper : op.reads) {
        if (GroupOf(op) == 0 || GroupOf(op) != GroupOf(ops_[keeper])) needed[keeper] = true;
      }
    }
    for (const auto& [row, tensor] : between_) {
      ForwardOp& op = ops_[row];
      if (tensor.maker >= ops_.size() || GroupOf(ops_[tensor.maker]) != GroupOf(op)) continue;
      if (needed[row]) continue;
      const double less = tensor.bytes * (1 - op.change->between);
      op.needed -= less;
      op.kept -= less * op.change->kept;
    }
  }

  struct Named {
    Keeps keeps = Keeps::kNothing;
    bool recognised = false;
  };
  struct Waiting {
    std::vector<size_t> rows;  // ops that met no backward kernel
    TaskId met;                // backward kernel that others of them met
  };

  const Graph& graph_;
  OpShapes shapes_;
  DataFlow flow_;
  absl::flat_hash_map<ScopeId, size_t> made_by_;          // rows
  absl::flat_hash_map<std::string_view, Named> by_name_;  // each name is read once
  std::vector<bool> trains_;                              // by step
  size_t most_ = 0;                                       // ops
  std::vector<ForwardOp> ops_;
  const absl::FunctionRef<void(const ForwardOp&)>* each_ = nullptr;  // then the last of them alone
  Pass pass_;
  size_t step_ = SIZE_MAX, forward_ = 0, backward_ = 0;
  size_t order_ = 0;
  uint16_t pass_number_ = 0;
  ScopeId open_scope_;
  absl::flat_hash_map<LayerId, Waiting> waiting_;
  std::vector<std::pair<size_t, KeptTensor>> between_;  // by row
};

}  // namespace

double WorkedOn(const OpShape& shape) { return WorkedOn(shape, KeptBy(shape.name)); }

bool HasBackward(const Graph& graph) {
  return std::any_of(graph.tasks().begin(), graph.tasks().end(), [](const Task& t) {
    return t.phase == Phase::kBackward && IsGpu(t.kind) && !t.removed;
  });
}

namespace {

// "batch_norm_backward_kernel", "igemm_bwd_gtcx2_nhwc", "igemm_wrw_...": where no operator was
// recorded, names are all that tells.
bool HasBackwardKernels(const Graph& graph) {
  return std::any_of(graph.tasks().begin(), graph.tasks().end(), [&](const Task& t) {
    if (t.kind != TaskKind::kKernel || t.removed) return false;
    const std::string_view name = graph.Name(t.name);
    return Contains(name, "backward") || Contains(name, "_bwd") || Contains(name, "_wrw") ||
           Contains(name, "wgrad") || Contains(name, "dgrad");
  });
}

}  // namespace

absl::Status CheckTrained(std::string_view what, const Graph& graph,
                          std::span<const ForwardOp> ops) {
  if (!HasBackward(graph)) {
    const bool kernels = HasBackwardKernels(graph);
    const bool ops = std::ranges::any_of(graph.tables().scopes,
                                         [](const Scope& s) { return s.kind == EventKind::kOp; });
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0625",
                       .what = fmt::format("{}: this trace has no backward pass", what),
                       .why = kernels ? "some of its kernels are named after one, but nothing was "
                                        "recorded that launched them from autograd"
                                      : "nothing is kept for one, so there is no memory to save",
                       .effect = "the step would stay as it is",
                       .fix = kernels && !ops ? "record the operators, too: ProfilerActivity.CPU"
                                              : "record steps of training"});
  }
  const bool joined =
      std::any_of(ops.begin(), ops.end(), [](const ForwardOp& op) { return op.backward.valid(); });
  if (joined) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0626",
       .what = fmt::format("{}: no layer has both forward and backward work", what),
       .why = "neither modules nor autograd's sequence numbers say which backward work belongs to "
              "which forward work",
       .effect = "it cannot be told when the backward pass needs something",
       .fix = "record with daydream trace, or with profile(record_shapes=True), which keeps "
              "sequence numbers"});
}

absl::Status CheckShapes(std::string_view what, std::span<const ForwardOp> ops) {
  const bool any =
      std::any_of(ops.begin(), ops.end(), [](const ForwardOp& op) { return op.shape.known(); });
  if (any) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    {.code = "E0627",
                     .what = fmt::format("{}: this trace has no shapes of ops", what),
                     .why = "what the forward pass keeps for backward follows from shapes",
                     .effect = "neither time nor memory can be told",
                     .fix = "record with profile(record_shapes=True, ...)"});
}

std::vector<ForwardOp> ForwardOps(const Graph& graph) { return Walk(graph).Run(); }

bool ForEachForwardOp(const Graph& graph, absl::FunctionRef<void(const ForwardOp&)> each) {
  return Walk(graph).Tell(each);
}

}  // namespace daydream
