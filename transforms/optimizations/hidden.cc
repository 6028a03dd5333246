// hidden: finds the widths of a model in its shapes and times all work for other ones.
#include <algorithm>
#include <array>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "transforms/analysis/batch_sizes.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/core/transform.h"
#include "transforms/edits/resize.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kHiddenParams[] = {
    {.name = "by",
     .unit = Unit::kFactor,
     .fallback = 2,
     .min = 0.01,
     .max = 100,
     .help = "how many times as wide layers become",
     .source = "chosen by the user",
     .required = true},
    {.name = "kernel_model",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 0.8,
     .high = 1.2,
     .max = 10,
     .help = "factor on every change of a kernel's time",
     .source = "a guess: no pair of recordings with other widths is at hand"},
};

// More kernel time than this without a width makes the answer a limit.
constexpr double kMuchUnchanged = 0.1;

// Widths inside of a model: what some weights give and others take. What the model reads from
// outside (colours, a vocabulary) and what it answers (classes) is not among them.
class Widths {
 public:
  void AddWeight(int64_t in, int64_t out) {
    in_.insert(in);
    out_.insert(out);
  }

  bool Has(int64_t size) const {
    if (in_.contains(size) && out_.contains(size)) return true;
    if (!in_.contains(size) && !out_.contains(size)) return false;
    // Several of them side by side, as queries, keys and values are: up to four.
    for (int64_t parts : {2, 3, 4}) {
      const int64_t one = size / parts;
      if (one * parts == size && one > 1 && in_.contains(one) && out_.contains(one)) return true;
    }
    return false;
  }

  bool any() const {
    return std::any_of(in_.begin(), in_.end(), [&](int64_t s) { return out_.contains(s); });
  }

 private:
  absl::flat_hash_set<int64_t> in_, out_;
};

class Hidden {
 public:
  Hidden(const Params& params, Editor& edit)
      : factor_(params["by"]),
        edit_(edit),
        resizer_(edit, Duration{}, ModelOf(params),
                 edit.AtEnds([](const EndView& at) { return ModelOf(at.params()); })),
        sizes_(edit.graph(), resizer_.shapes()),
        classes_(edit.graph()) {}

  absl::Status Run() {
    FindWidths();
    if (!widths_.any()) {
      edit_.changes().notes.push_back(
          "no two layers share a width: shapes of ops are needed (record_shapes=True)");
      return absl::OkStatus();
    }
    edit_.BeginCause(factor_ >= 1 ? "layers are wider" : "layers are narrower");
    for (size_t i = 0; i < edit_.recorded_tasks(); ++i) {
      const TaskId t(i);
      const Task& task = graph().task(t);
      if (task.removed && !task.merged) continue;
      if (task.kind == TaskKind::kKernel) {
        resizer_.Resize(t, [&](TaskId id, const OpShape& shape) { return SizesOf(id, shape); });
      } else if (task.kind == TaskKind::kCollective) {
        Exchange(t);
      }
    }
    KeepSizes();
    Changes& changes = edit_.changes();
    changes.notes.push_back(
        fmt::format("{}; attention gets more heads of the same width", resizer_.Summary()));
    if (factor_ != 1 && resizer_.UnchangedShare() > kMuchUnchanged) {
      changes.bound = factor_ > 1;
      changes.warnings.push_back(
          fmt::format("no width was found in {:.0f} % of the kernel time, which stays as it is: a "
                      "{} model takes {} than this",
                      100 * resizer_.UnchangedShare(), factor_ > 1 ? "wider" : "narrower",
                      factor_ > 1 ? "longer" : "less"));
    }
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  static Resizer::Model ModelOf(const Params& p) { return {.factor = p["kernel_model"]}; }

  // Later transforms, and the peak of memory, see the new sizes.
  void KeepSizes() {
    const MemoryProfile before = ProfileMemory(graph());
    std::vector<std::pair<ScopeId, Dims>> parameters;
    for (ScopeId s : GradientScopes(graph())) {
      const OpDetail* op = graph().OpOf(s);
      if (op == nullptr || !op->shapes.valid()) continue;
      const auto shapes = ParseShapes(graph().Name(op->shapes));
      if (!shapes || shapes->empty()) continue;
      Dims dims = shapes->front();
      if (WidenTensor(dims, /*all_sides=*/true)) parameters.emplace_back(s, std::move(dims));
    }
    resizer_.KeepShapes();
    for (const auto& [scope, dims] : parameters) SetInputs(edit_.graph(), scope, {dims});
    const MemoryProfile after = ProfileMemory(graph());
    std::vector<MemoryChange>& memory = edit_.changes().memory;
    memory.push_back({.what = "bytes kept for backward, which have other widths",
                      .kept = true,
                      .in_step = factor_});
    const double growth = before.parameters > 0 ? after.parameters / before.parameters - 1 : 0;
    memory.push_back(ChangeOfParameters(before, growth));
  }

  void FindWidths() {
    for (size_t i = 0; i < graph().size(); ++i) {
      const TaskId t(i);
      const Task& task = graph().task(t);
      const bool forward = task.phase != Phase::kBackward && task.phase != Phase::kOptimizer;
      if (task.removed || task.kind != TaskKind::kKernel || !forward) continue;
      const OpShape& shape = resizer_.shapes().Of(t);
      const std::vector<Dims>& in = shape.inputs;
      const size_t at = shape.name == "addmm" ? 1 : 0;
      const bool product = shape.name == "addmm" || shape.name == "mm";
      if (product && in.size() > at + 1 && in[at + 1].size() == 2) {
        widths_.AddWeight(in[at + 1][0], in[at + 1][1]);
      } else if (shape.name == "linear" && in.size() >= 2 && in[1].size() == 2) {
        widths_.AddWeight(in[1][1], in[1][0]);
      } else if (IsConvolution(shape.name) && in.size() >= 2 && in[0].size() >= 3 &&
                 in[1].size() == in[0].size()) {
        widths_.AddWeight(in[0][1], in[1][0]);
      }
    }
  }

  bool Widen(int64_t& size) const {
    if (!widths_.Has(size)) return false;
    size = ScaledSize(size, factor_);
    return true;
  }

  Resizer::Sizes SizesOf(TaskId t, const OpShape& shape) {
    const Phase phase = graph().task(t).phase;
    const KernelClass kind = classes_.Of(t);
    const bool modelled = shape.known() && (!Multiplies(kind) || HasProducts(shape));
    if (!modelled) {
      // Weights have two sides, activations one.
      const bool twice = phase == Phase::kOptimizer || kind == KernelClass::kOptimizer ||
                         kind == KernelClass::kGemm || kind == KernelClass::kConv;
      return {.inputs = std::nullopt, .growth = twice ? factor_ * factor_ : factor_};
    }
    std::vector<Dims> inputs = shape.inputs;
    bool any = false;
    const size_t at = shape.name == "addmm" || shape.name == "baddbmm" ? 1 : 0;
    const bool product = at == 1 || shape.name == "mm" || shape.name == "bmm";
    if (product && inputs.size() > at + 1) {
      any = WidenProduct(inputs, at, phase);
    } else {
      for (size_t i = 0; i < inputs.size(); ++i) {
        any |= WidenTensor(inputs[i], phase == Phase::kOptimizer || IsConvolution(shape.name));
      }
    }
    if (any) return {.inputs = std::move(inputs), .growth = factor_};
    // What is exchanged is often flattened, which hides its width.
    return {.inputs = std::nullopt, .growth = kind == KernelClass::kComm ? factor_ : 1};
  }

  // The sizes that an op of its own got (padded, packed, per expert) do not tell what it
  // multiplies.
  static bool HasProducts(const OpShape& shape) {
    const auto work = WorkOf(shape.name, shape.inputs, shape.dtype);
    return work && !work->products.empty();
  }

  bool WidenProduct(std::vector<Dims>& inputs, size_t at, Phase phase) const {
    Dims &a = inputs[at], &b = inputs[at + 1];
    if (a.size() == 3 && b.size() == 3) {  // one product for each head
      a[0] = b[0] = ScaledSize(a[0], factor_);
      if (at == 1 && inputs[0].size() == 3) inputs[0][0] = a[0];
      return true;
    }
    if (a.size() != 2 || b.size() != 2) return false;
    bool any = false;
    if (sizes_.IsWeightGradient(a, b, phase)) {
      any = Widen(a[0]);
    } else {
      any = Widen(a[1]);
      b[0] = a[1];
    }
    any |= Widen(b[1]);
    if (at == 1) inputs[0] = inputs[0].size() == 1 ? Dims{b[1]} : Dims{a[0], b[1]};
    return any;
  }

  // Parameters grow on all sides. Activations grow in their last size, or the second of images;
  // what has none of the widths there and belongs to heads has more of them.
  bool WidenTensor(Dims& dims, bool all_sides) const {
    if (dims.empty()) return false;
    if (all_sides || sizes_.IsParameter(dims)) {
      bool any = false;
      const size_t sides = std::min<size_t>(dims.size(), 2);
      for (size_t i = 0; i < sides; ++i) {
        // The first size of an image is how many there are.
        if (i == 0 && dims.size() >= 3 && !sizes_.IsParameter(dims)) continue;
        any |= Widen(dims[i]);
      }
      return any;
    }
    if (Widen(dims.back())) return true;
    if (dims.size() >= 4 && Widen(dims[1])) return true;
    if (dims.size() < 3 || dims.back() <= 1) return false;
    int64_t& heads = dims[dims.size() == 3 ? 0 : 1];
    heads = ScaledSize(heads, factor_);
    return true;
  }

  // Gradients of weights have two sides; what the forward pass exchanges has one.
  void Exchange(TaskId t) {
    const CollectiveDetail* detail = graph().Collective(t);
    const bool activations =
        detail != nullptr && sizes_.recorded() > 1 && detail->elements_in % sizes_.recorded() == 0;
    const Duration transfer = graph().Transfer(t);
    const Duration then = transfer.Scaled(activations ? factor_ : factor_ * factor_);
    edit_.SetDuration(t, graph().task(t).duration - transfer + then);
    edit_.SetTransfer(t, then);
  }

  double factor_;
  Editor& edit_;
  Resizer resizer_;
  BatchSizes sizes_;
  KernelClasses classes_;
  Widths widths_;
};

absl::Status RunHidden(const Params& params, Editor& edit) { return Hidden(params, edit).Run(); }

}  // namespace

constinit const Transform kHidden = {
    .name = "hidden",
    .summary = "A wider or narrower model",
    .params = kHiddenParams,
    .ends = AtEnds::kTimes,
    .apply = &RunHidden,
    .model =
        "A width is a size that some weight gives and another takes, or up to four of them side by "
        "side. Products, convolutions, parameters and activations get their widths times the "
        "factor, attention that many times the heads, and every kernel takes measured time times "
        "model(new shapes) / model(recorded shapes), as for batch. Kernels without shapes, and "
        "products of ops whose work is not known: products and the optimizer grow with the square, "
        "others with the factor. Where more than 10 % of the kernel time shows no width, the "
        "answer is a limit. Host time stays.",
    .ignores =
        "Other algorithms that libraries pick for other sizes, memory that runs out. Sizes that "
        "equal a width by chance are taken for one. Grouped and depthwise convolutions keep the "
        "channels of a group.",
    .sources = "docs/cost-model.md for the model of kernels; not checked against measurements yet",
    .twice = "what short kernels take does not multiply: one factor says both",
    .memory_model =
        "What each op keeps for backward follows from its new shapes. Parameters grow on each "
        "side that is a width: matrices with the square of the factor, vectors with the factor; "
        "gradients and the optimizer's state with them.",
};

}  // namespace daydream
