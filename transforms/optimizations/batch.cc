// batch: all work is timed anew for other sizes of the batch, each kernel by the model of its op.
#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "graph/scopes.h"
#include "transforms/analysis/batch_sizes.h"
#include "transforms/analysis/link_rate.h"
#include "transforms/analysis/loader.h"
#include "transforms/core/transform.h"
#include "transforms/edits/resize.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kBatchParams[] = {
    {.name = "size",
     .unit = Unit::kText,
     .help = "examples in a step (512), or how many times the recorded (x4)",
     .source = "chosen by the user",
     .required = true},
    {.name = "recorded",
     .unit = Unit::kNone,
     .fallback = 0,
     .max = 1e9,
     .help = "examples in a recorded step; 0 = told from recorded shapes",
     .source = "known to whoever recorded the trace",
     .whole = true},
    {.name = "floor",
     .unit = Unit::kDuration,
     .fallback = 0,
     .max = 1e6,
     .help = "what a kernel takes whatever it does; 0 = told from short kernels of this trace",
     .source = "kernels with fewer blocks than multiprocessors; 2 us where there are none"},
    {.name = "kernel_model",
     .unit = Unit::kFactor,
     .fallback = 1,
     .low = 0.9,
     .high = 1.1,
     .max = 10,
     .help = "factor on every change of a kernel's time",
     .source = "measured: docs/optimizations/batch.md"},
    {.name = "fill",
     .unit = Unit::kShare,
     .fallback = 0.5,
     .low = 0,
     .high = 1,
     .max = 1,
     .help = "without shapes: how far libraries keep the GPU busy with fewer examples; 0: blocks "
             "stay as they are, 100%: the time of a product follows its work",
     .source = "no measurement: the middle of what is possible, the range all of it"},
};

// Copies below this size carry single values and lists of pointers.
constexpr uint64_t kSmallCopy = 1 << 10;

class Batch {
 public:
  Batch(const Params& params, Editor& edit)
      : params_(params),
        edit_(edit),
        resizer_(edit, Duration::FromDouble(params["floor"]), ModelOf(params),
                 edit.AtEnds([](const EndView& at) { return ModelOf(at.params()); })),
        sizes_(edit.graph(), resizer_.shapes()),
        classes_(edit.graph()),
        loader_(edit.graph()) {}

  absl::Status Run() {
    if (params_["recorded"] > 0) {
      sizes_.SetExamples(static_cast<int64_t>(params_["recorded"]));
    }
    DD_RETURN_IF_ERROR(FindFactor());
    FindActivationCollectives();
    // What is re-timed is found first: edits do not change it.
    for (size_t i = 0; i < edit_.recorded_tasks(); ++i) {
      const TaskId t(i);
      const Task& task = graph().task(t);
      if (task.removed && !(task.merged && task.kind == TaskKind::kKernel)) continue;
      switch (task.kind) {
        case TaskKind::kKernel:
          Kernel(t);
          break;
        case TaskKind::kMemcpy:
        case TaskKind::kMemset:
          Copy(t);
          break;
        case TaskKind::kCollective:
          Collective(t);
          break;
        default:
          Load(t);
      }
    }
    TellBatch();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  static Resizer::Model ModelOf(const Params& p) { return {p["kernel_model"], p["fill"]}; }

  absl::Status NotKnown(std::string_view size) const {
    const std::string candidates = sizes_.Candidates();
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0615",
         .what = "batch: how many examples a recorded step has is not known",
         .why = candidates.empty()
                    ? "the trace holds no shapes of ops, or none that shows a batch"
                    : fmt::format("shapes tell, but may count tokens or parts of examples: {}",
                                  candidates),
         .fix = candidates.empty()
                    ? "--opt 'batch(x4)', or --opt 'batch(512,recorded=N)'; record_shapes=True "
                      "records shapes"
                    : fmt::format("--opt 'batch({},recorded={})' or --samples {}, if that is the "
                                  "number; --opt 'batch(x4)' without it",
                                  size, sizes_.recorded(), sizes_.recorded())});
  }

  absl::Status FindFactor() {
    const std::string_view text = params_.text("size");
    const auto wanted = ParseQuantity(text);
    const bool readable = wanted.ok() && wanted->value > 0 && std::isfinite(wanted->value) &&
                          (wanted->unit == Unit::kNone || wanted->unit == Unit::kFactor);
    if (!readable) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0616",
                         .what = fmt::format("batch: '{}' is no size of a batch", text),
                         .why = "it is a count of examples or a factor on the recorded one",
                         .fix = "--opt 'batch(512)' or --opt 'batch(x4)'"});
    }
    if (wanted->unit == Unit::kFactor && params_.given("recorded")) {
      return MakeStatus(
          absl::StatusCode::kInvalidArgument,
          {.code = "E0616",
           .what = fmt::format("batch: {} has no use for recorded={}", text, params_["recorded"]),
           .why = "a factor is on whatever was recorded",
           .fix = "--opt 'batch(x4)', or --opt 'batch(512,recorded=32)'"});
    }
    if (wanted->unit == Unit::kFactor) {
      factor_ = wanted->value;
    } else if (sizes_.examples() > 0) {
      factor_ = wanted->value / static_cast<double>(sizes_.examples());
    } else {
      return NotKnown(text);
    }
    const auto recorded = static_cast<double>(sizes_.examples());
    if (recorded > 0 && factor_ * recorded < 1 - 1e-9) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0616",
                         .what = fmt::format("batch: {} is less than one example", text),
                         .why = fmt::format("a recorded step has {} of them ({})",
                                            sizes_.examples(), sizes_.told_by()),
                         .fix = "--opt 'batch(1)', or batch(...,recorded=N) if that is not the "
                                "recorded batch"});
    }
    if (factor_ < 1e-6 || factor_ > 1e6) {
      return MakeStatus(
          absl::StatusCode::kInvalidArgument,
          {.code = "E0616",
           .what = fmt::format("batch: {} is {:g} times the recorded batch", text, factor_),
           .why = "nothing is known so far from what was measured",
           .fix = "a size within a factor of a million"});
    }
    return absl::OkStatus();
  }

  // Gradients are cleared and clipped outside of the optimizer's own range.
  bool WorksOnGradients(const Task& task) {
    auto [it, inserted] = on_gradients_.try_emplace(task.scope, false);
    if (!inserted) return it->second;
    for (ScopeId s : ScopesAround(graph(), task.scope)) {
      if (ContainsAny(graph().Name(ScopeAt(graph(), s).name),
                      {"zero_grad", "clip_grad", "AccumulateGrad"})) {
        it->second = true;
        break;
      }
    }
    return it->second;
  }

  void Kernel(TaskId t) {
    edit_.BeginCause(factor_ >= 1 ? "kernels work on more examples"
                                  : "kernels work on fewer examples");
    resizer_.Resize(t, [&](TaskId id, const OpShape& shape) {
      const Task& task = graph().task(id);
      const bool fixed = task.phase == Phase::kOptimizer || WorksOnGradients(task) ||
                         classes_.Of(id) == KernelClass::kOptimizer;
      if (fixed) return Resizer::Sizes{};
      return Resizer::Sizes{.inputs = sizes_.Scaled(shape.name, shape.inputs, task.phase, factor_),
                            .growth = shape.known() ? 1 : factor_};
    });
  }

  // Beyond the latency of a short copy, time follows bytes.
  void Copy(TaskId t) {
    const Task& task = graph().task(t);
    const CopyDetail* detail = graph().Copy(t);
    if (detail == nullptr || detail->bytes < kSmallCopy || task.phase == Phase::kOptimizer ||
        WorksOnGradients(task)) {
      return;
    }
    const OpShape& shape = resizer_.shapes().Of(t);
    if (shape.known() && !sizes_.Scaled(shape.name, shape.inputs, task.phase, factor_)) return;
    edit_.BeginCause("copies move other amounts");
    CopyDetail moved = *detail;
    moved.bytes = static_cast<uint64_t>(ScaledSize(static_cast<int64_t>(moved.bytes), factor_));
    const Duration latency = std::min(task.duration, kCopyLatency);
    edit_.SetDuration(t, latency + (task.duration - latency).Scaled(factor_));
    edit_.SetCopy(t, moved);
  }

  // What a collective of the forward pass exchanges are activations (tensor or expert parallel),
  // and so is the same amount anywhere else; gathering parameters is not meant by that.
  void FindActivationCollectives() {
    for (size_t i = 0; i < graph().size(); ++i) {
      const Task& task = graph().task(TaskId(i));
      const CollectiveDetail* detail = graph().Collective(TaskId(i));
      if (detail == nullptr || task.removed || detail->elements_in <= 0) continue;
      const Scope* scope = graph().ScopeOf(TaskId(i));
      const std::string_view name = graph().Name(detail->name);
      const bool gathers = ContainsAny(name, {"gather", "broadcast"});
      if (scope != nullptr && !gathers && ForwardScope(task.scope)) {
        activations_.insert(detail->elements_in);
      }
    }
  }

  // Tasks of collectives have a phase of their own; the ranges around them tell the pass.
  bool ForwardScope(ScopeId innermost) const {
    for (ScopeId s : ScopesAround(graph(), innermost)) {
      const Scope& scope = ScopeAt(graph(), s);
      const std::string_view name = graph().Name(scope.name);
      if (scope.kind == EventKind::kFrame || Contains(name, "forward")) return true;
      if (ContainsAny(name, {"ackward", "DistributedDataParallel", "ptimizer"})) return false;
    }
    return false;
  }

  void Collective(TaskId t) {
    const CollectiveDetail* detail = graph().Collective(t);
    if (detail == nullptr || !activations_.contains(detail->elements_in)) {
      ++gradients_;
      return;
    }
    edit_.BeginCause("collectives move other amounts");
    const Duration transfer = graph().Transfer(t);
    const Duration then = transfer.Scaled(factor_);
    edit_.SetDuration(t, graph().task(t).duration - transfer + then);
    edit_.SetTransfer(t, then);
    ++exchanged_;
  }

  void Load(TaskId t) {
    const Task& task = graph().task(t);
    const bool loads = task.kind == TaskKind::kData || loader_.Around(task.scope).valid();
    if (!loads || task.kind == TaskKind::kDelay) return;
    edit_.BeginCause("the loader makes other batches");
    edit_.SetDuration(t, task.duration.Scaled(factor_));
    const bool gap = task.kind == TaskKind::kData || loader_.OwnsGapOf(task);
    if (gap && task.gap > Duration{}) edit_.SetGap(t, task.gap.Scaled(factor_));
  }

  void TellBatch() {
    Changes& changes = edit_.changes();
    changes.samples *= factor_;
    changes.memory.push_back(
        {.what = fmt::format("bytes kept for backward, which {} with the batch",
                             factor_ < 1 ? "shrink" : "grow"),
         .kept = true,
         .in_step = factor_});
    resizer_.KeepShapes();
    if (const int64_t examples = sizes_.examples(); examples > 0) {
      changes.notes.push_back(fmt::format("batch {} to {} ({})", examples,
                                          ScaledSize(examples, factor_), sizes_.told_by()));
    }
    changes.notes.push_back(
        fmt::format("{}; short kernels take {:.1f} us", resizer_.Summary(), resizer_.floor().us()));
    if (exchanged_ > 0) {
      changes.notes.push_back(fmt::format(
          "{} collectives exchange activations and grow, {} others stay", exchanged_, gradients_));
    }
    if (sizes_.recorded() == 0) {
      changes.conditions.push_back(
          "no shapes of ops: everything outside of the optimizer is taken to grow with the batch");
    }
  }

  const Params& params_;
  Editor& edit_;
  Resizer resizer_;
  BatchSizes sizes_;
  KernelClasses classes_;
  LoaderScopes loader_;
  double factor_ = 1;
  absl::flat_hash_map<ScopeId, bool> on_gradients_;
  absl::flat_hash_set<int64_t> activations_;  // elements of collectives that exchange them
  uint64_t exchanged_ = 0, gradients_ = 0;
};

absl::Status RunBatch(const Params& params, Editor& edit) { return Batch(params, edit).Run(); }

}  // namespace

constinit const Transform kBatch = {
    .name = "batch",
    .summary = "Steps with more or fewer examples",
    .params = kBatchParams,
    .ends = AtEnds::kTimes,
    .apply = &RunBatch,
    .model =
        "Every kernel takes measured time times model(new shapes) / model(recorded shapes), beyond "
        "the time that any kernel takes: products and convolutions by tiles and waves, the rest by "
        "bytes. Which size of an input is the batch follows from what layers read; inputs that are "
        "parameters stay, as do kernels of the optimizer. Kernels slower than their bytes explain "
        "follow their blocks once those fill the GPU. Without shapes products do so, too, when the "
        "batch grows; when it shrinks they take the mean (`fill`) of that and of their work; all "
        "other kernels follow the work. Copies and the loader's work grow with the batch; other "
        "host time stays. Collectives grow only if the forward pass has some that move as much: "
        "gradients do not depend on the batch.",
    .ignores =
        "Other algorithms that libraries pick for other sizes, memory that runs out, loader "
        "processes that can no longer keep up (they are not in a trace), convergence.",
    .sources =
        "docs/cost-model.md for the model of kernels; CUDA C++ Programming Guide, occupancy; "
        "checked on one model between batch 128 and 512 (docs/optimizations/batch.md)",
    .advice = {.effort = "1 number",
               .risk = "memory, convergence",
               .how = "DataLoader(dataset, batch_size=...)"},
    .twice = "what short kernels take does not multiply: one size says both",
    .memory_model =
        "What each op keeps for backward follows from its new shapes; parameters, gradients and "
        "the optimizer's state stay. Without shapes all that comes and goes within a step grows "
        "with the batch.",
};

}  // namespace daydream
