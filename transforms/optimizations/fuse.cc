// fuse: runs of optimizer or elementwise kernels become one kernel that touches each tensor once.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "transforms/analysis/optimizer_name.h"
#include "transforms/core/floor_param.h"
#include "transforms/core/select.h"
#include "transforms/core/transform.h"
#include "transforms/edits/fuse_groups.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kFuseParams[] = {
    {.name = "what",
     .unit = Unit::kText,
     .text_fallback = "all",
     .help = "optimizer, elementwise, norm, all (optimizer and elementwise), or a selector such "
             "as kernel:rope: runs of kernels that match are merged",
     .source = "chosen by the user"},
    kFloorParam,
    kPassesParam,
    kKeptParam,
};

// Bytes that a fused optimizer moves per parameter, in fp32 (read parameter, gradient and state,
// write parameter and state), by how many kernels per parameter the recorded one needs.
double FusedBytes(size_t kernels_per_parameter) {
  if (kernels_per_parameter >= 6) return 28;  // Adam: p, g, m, v in; p, m, v out
  if (kernels_per_parameter >= 2) return 20;  // SGD with momentum: p, g, b in; p, b out
  return 12;                                  // SGD: p, g in; p out
}

// Forms of PyTorch's optimizers that go over all parameters at once (documentation of torch.optim,
// 2.5: `fused` and `foreach`; SGD is fused since 2.3, Adagrad on CPUs only): one kernel for all of
// a step, or each operation with its launches for lists of parameters.
enum class Form : uint8_t { kFused, kForeach, kNone };
constexpr std::string_view kFused[] = {"Adam", "AdamW", "SGD"};
constexpr std::string_view kForeach[] = {"Adadelta", "ASGD",  "Adagrad", "Adamax",
                                         "NAdam",    "RAdam", "RMSprop", "Rprop"};
// Tensors of two lists that one launch of PyTorch works on (ATen/native/cuda/MultiTensorApply.cuh,
// depth_to_max_tensors: 110, 64, 48, 36 and 30 of one to five lists).
constexpr size_t kTensorsALaunch = 64;

Form FormOf(std::string_view optimizer) {
  if (std::ranges::count(kFused, optimizer) > 0) return Form::kFused;
  return std::ranges::count(kForeach, optimizer) > 0 ? Form::kForeach : Form::kNone;
}

class Fuse {
 public:
  Fuse(const Params& params, Editor& edit) : params_(params), edit_(edit), groups_(edit) {}

  absl::Status Run() {
    std::string_view what = params_.text("what");
    const bool known =
        what == "all" || what == "optimizer" || what == "elementwise" || what == "norm";
    if (!known) return FusePattern(what);
    if (what == "all" || what == "optimizer") FuseOptimizers(what == "optimizer");
    if (what == "optimizer") edit_.changes().memory.push_back({.what = "the same state is kept"});
    if (what == "all" || what == "elementwise") {
      FuseRuns({KernelClass::kElementwise, KernelClass::kOptimizer}, "elementwise");
    }
    if (what == "norm") {
      FuseRuns({KernelClass::kElementwise, KernelClass::kNorm}, "norm");
    }
    if (!edit_.changes().any()) edit_.changes().notes.push_back(WhyNoFuse(what));
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  Duration DurationOf(TaskId t) const { return graph().task(t).duration; }

  // Says how to get the fused form of this optimizer. False: there is none, so that nobody can
  // switch it on.
  bool HasFusedForm(bool asked) {
    const std::string name = OptimizerName(graph());
    if (name.empty()) return true;
    if (name.find("Fused") != std::string::npos) {
      edit_.changes().notes.push_back(fmt::format("the optimizer is fused already ({})", name));
      return false;
    }
    form_ = FormOf(name);
    if (form_ != Form::kNone) {
      const std::string how = fmt::format("torch.optim.{}(..., {}=True)", name,
                                          form_ == Form::kFused ? "fused" : "foreach");
      optimizer_how_ = "; " + how;
      if (asked) edit_.changes().how = how;  // else it is not all that is merged
      return true;
    }
    if (asked) {
      edit_.changes().warnings.push_back(
          fmt::format("PyTorch has no fused form of {}: somebody would have to write it", name));
      edit_.changes().effort = "a new kernel";
      edit_.changes().risk = "numerics";
      edit_.changes().how =
          fmt::format("a kernel for {}, which PyTorch has no fused form of", name);
    } else {
      edit_.changes().notes.push_back(fmt::format(
          "PyTorch has no fused form of {}, so its kernels stay; fuse(optimizer) merges them",
          name));
    }
    return asked;
  }

  void FuseOptimizers(bool asked) {
    if (!HasFusedForm(asked)) return;
    size_t before = 0, groups = 0, steps = 0, fused_already = 0;
    const std::vector<std::vector<TaskId>> all = groups_.Optimizers(&fused_already);
    if (fused_already > 0) {
      edit_.changes().notes.push_back("the optimizer is fused already");
      return;
    }
    const auto is_list = [&](TaskId t) {
      return graph().TaskName(t).find("multi_tensor_apply") != std::string_view::npos;
    };
    const auto has_lists = [&](const auto& group) { return std::ranges::any_of(group, is_list); };
    if (form_ == Form::kForeach && std::ranges::any_of(all, has_lists)) {
      edit_.changes().notes.push_back("the optimizer works on lists of parameters already");
      return;
    }
    for (const std::vector<TaskId>& group : all) {
      if (group.size() < 2) continue;
      if (form_ == Form::kForeach) {
        if (const size_t launches = MergeInLists(group)) {
          before += group.size(), groups += launches, ++steps;
        }
        continue;
      }
      ++steps;
      const size_t per_parameter = KernelsPerParameter(group);
      before += group.size(), ++groups;
      const Duration time =
          FusedTime(group, per_parameter, params_, [&](TaskId t) { return DurationOf(t); });
      groups_.Merge(group, "fused_optimizer", time, "optimizer kernels merged", /*whole_step=*/true,
                    edit_.AtEnds([&](const EndView& at) {
                      return FusedTime(group, per_parameter, at.params(),
                                       [&](TaskId t) { return at.DurationOf(t); });
                    }));
    }
    if (groups > 0) {
      edit_.changes().notes.push_back(fmt::format("optimizer: {} kernels in {} steps become {}{}",
                                                  before, steps, groups, optimizer_how_));
    }
  }

  // As `foreach` does: each operation goes over lists of parameters and moves the bytes that it
  // moved. Which of them share a launch does not matter to the time of all, so neighbours do.
  // Returns the launches that are left; 0: as many as before.
  size_t MergeInLists(const std::vector<TaskId>& group) {
    std::map<NameId, size_t> tensors;  // of each operation
    for (TaskId t : group) ++tensors[graph().task(t).name];
    size_t launches = 0;
    for (const auto& [name, n] : tensors) launches += (n + kTensorsALaunch - 1) / kTensorsALaunch;
    if (launches == group.size()) return 0;
    for (size_t i = 0; i < launches; ++i) {
      const auto at = [&](size_t piece) {
        return group.begin() + static_cast<std::ptrdiff_t>(piece * group.size() / launches);
      };
      const std::vector<TaskId> list(at(i), at(i + 1));
      if (list.size() < 2) continue;
      const Duration time = ListTime(list, params_, [&](TaskId t) { return DurationOf(t); });
      groups_.Merge(list, "foreach_optimizer", time, "optimizer kernels work on lists",
                    /*whole_step=*/true, edit_.AtEnds([&](const EndView& at_end) {
                      return ListTime(list, at_end.params(),
                                      [&](TaskId t) { return at_end.DurationOf(t); });
                    }));
    }
    return launches;
  }

  // What every kernel takes, once, and all that they took beyond it.
  template <class Of>
  static Duration ListTime(const std::vector<TaskId>& list, const Params& params, const Of& of) {
    const Duration floor = FloorOf(params);
    Duration longest, beyond;
    for (TaskId t : list) {
      longest = std::max(longest, of(t));
      beyond += std::max(of(t) - floor, Duration{});
    }
    return std::max(longest, floor + beyond);
  }

  // What a fused optimizer takes, with kernels that take `of`.
  template <class Of>
  static Duration FusedTime(const std::vector<TaskId>& group, size_t per_parameter,
                            const Params& params, const Of& of) {
    // An unfused kernel moves about `passes` tensors of 4 bytes an element.
    const double ratio =
        std::min(1.0, FusedBytes(per_parameter) /
                          (4 * params["passes"] * static_cast<double>(per_parameter)));
    // Below twice the floor a kernel's time says little about the bytes it moves.
    const Duration least = FloorOf(params) * 2;
    Duration moving, longest;
    for (TaskId t : group) {
      if (of(t) > least)
        moving += of(t);
      else
        longest = std::max(longest, of(t));
    }
    return std::max(longest, moving.Scaled(ratio));
  }

  // How often each parameter is visited: all kernels by those of the rarest frequent kind.
  size_t KernelsPerParameter(const std::vector<TaskId>& group) const {
    std::map<NameId, size_t> counts;
    for (TaskId t : group) ++counts[graph().task(t).name];
    size_t rarest = group.size();
    for (const auto& [name, count] : counts) {
      if (count * 20 >= group.size()) rarest = std::min(rarest, count);
    }
    return std::max<size_t>(group.size() / rarest, 1);
  }

  bool HasNorm(const std::vector<TaskId>& run) const {
    return std::any_of(run.begin(), run.end(),
                       [&](TaskId t) { return groups_.ClassOf(t) == KernelClass::kNorm; });
  }

  void FuseRuns(const FuseGroups::Classes& classes, std::string_view what) {
    size_t kernels = 0, merged = 0, by_shape = 0;
    for (const std::vector<TaskId>& run : groups_.Runs(classes)) {
      if (what == "norm" && !HasNorm(run)) continue;
      bool shaped = false;
      const Duration time = groups_.TimeOf(run, ModelOf(run, params_), &shaped);
      kernels += run.size(), ++merged;
      by_shape += shaped ? 1 : 0;
      groups_.Merge(run, fmt::format("fused_{}_{}", what, run.size()), time,
                    fmt::format("{} kernels merged", what), /*whole_step=*/false, TimesAtEnds(run));
      KeepBetween(run);
    }
    if (merged == 0) return;
    std::string bytes =
        fmt::format("bytes of {} follow from shapes, of the others from times", by_shape);
    if (by_shape == merged) bytes = "bytes follow from shapes";
    if (by_shape == 0) bytes = "bytes are told from their times";
    edit_.changes().notes.push_back(
        fmt::format("{}: {} kernels become {}; {}", what, kernels, merged, bytes));
  }

  RunModel ModelOf(const std::vector<TaskId>& run, const Params& params) const {
    const bool training =
        graph().task(run.front()).phase == Phase::kForward && groups_.has_backward();
    return {.floor = FloorOf(params),
            .passes = params["passes"],
            .kept = training ? params["kept"] : 0};
  }
  std::vector<Duration> TimesAtEnds(const std::vector<TaskId>& run) {
    return edit_.AtEnds(
        [&](const EndView& at) { return groups_.TimeOf(run, ModelOf(run, at.params()), at); });
  }

  void KeepBetween(const std::vector<TaskId>& run) {
    if (graph().task(run.front()).phase != Phase::kForward) return;
    groups_.KeepBetween(run, params_["kept"]);
  }

  absl::Status FusePattern(std::string_view pattern) {
    // A bare word is more likely a slip than a pattern.
    if (!Contains(pattern, ":")) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0103",
                         .what = fmt::format("fuse cannot tell what '{}' is", pattern),
                         .fix = "optimizer, elementwise, norm, all, or a selector with its key, "
                                "such as kernel:rope"});
    }
    DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(pattern));
    std::vector<bool> wanted(graph().size());
    for (TaskId t : selector.Select(graph())) {
      if (graph().task(t).kind == TaskKind::kKernel) wanted[t.index()] = true;
    }
    size_t kernels = 0, merged = 0;
    for (const std::vector<TaskId>& run : groups_.RunsOf(wanted)) {
      bool shaped = false;
      const Duration time = groups_.TimeOf(run, ModelOf(run, params_), &shaped);
      kernels += run.size(), ++merged;
      groups_.Merge(run, fmt::format("fused_pattern_{}", run.size()), time,
                    fmt::format("{} merged", pattern), /*whole_step=*/false, TimesAtEnds(run));
      KeepBetween(run);
    }
    edit_.changes().notes.push_back(
        merged == 0 ? fmt::format("no two kernels in a row match {}", pattern)
                    : fmt::format("{}: {} kernels become {}", pattern, kernels, merged));
    return absl::OkStatus();
  }

  static std::string WhyNoFuse(std::string_view what) {
    if (what == "optimizer") return "no optimizer kernels that could be merged";
    if (what == "norm") {
      return "no norm next to elementwise kernels of its size; shapes of ops are needed "
             "(record_shapes=True)";
    }
    return "no run of elementwise kernels of equal size";
  }

  const Params& params_;
  Editor& edit_;
  FuseGroups groups_;
  std::string optimizer_how_;
  Form form_ = Form::kFused;
};

absl::Status RunFuse(const Params& params, Editor& edit) { return Fuse(params, edit).Run(); }

}  // namespace

constinit const Transform kFuse = {
    .name = "fuse",
    .summary = "Optimizer and elementwise kernels are merged",
    .params = kFuseParams,
    .ends = AtEnds::kTold,
    .apply = &RunFuse,
    .model =
        "optimizer: the kernels of an optimizer step become one, which reads and writes each "
        "parameter, gradient and state once; where PyTorch has foreach only (RMSprop, Adagrad, "
        "...), each operation goes over lists of up to 64 parameters a launch and moves what it "
        "moved. elementwise: runs of elementwise kernels of "
        "equal size on one stream, with nothing else between them, become one that no "
        "longer writes and reads what passes between them. norm: the same with norms of the "
        "same size. A selector: runs of kernels that match, whatever their size. With shapes "
        "and a known GPU the bytes of both sides follow, and measured times change in their "
        "ratio; without, bytes are told from times, and where a kernel is so short that its "
        "time does not tell them, the longest stands for all. Launches of the merged "
        "kernels, and the host time of their ops, are gone.",
    .ignores =
        "Fusion into matrix products and reductions; limits of registers; a fused form that needs "
        "several launches.",
    .sources =
        "Daydream (ATC'20), section 5 (fused Adam, with bytes in place of the sum of "
        "times); NeuSight (ASPLOS'25) for merging by bytes",
    .advice =
        {.effort = "1 word",
         .risk = "none",
         .how = "fused=True for Adam, AdamW and SGD, foreach=True for other optimizers of PyTorch "
                "(a note of whatif names yours); torch.compile(model) for elementwise kernels"},
    .twice = "",
    .memory_model =
        "Of what passes between the ops of a merged forward kernel, and that no other op needs, "
        "the share `kept` stays for backward and the rest is made again. A fused optimizer keeps "
        "the same state, and its temporaries are gone when memory is fullest anyway: at the end "
        "of the forward pass.",
};

}  // namespace daydream
