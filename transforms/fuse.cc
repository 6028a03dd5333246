#include <algorithm>
#include <map>

#include "transforms/fuse_groups.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

constexpr std::string_view kChoices[] = {"all", "optimizer", "elementwise"};
constexpr ParamSpec kParams[] = {
    {.name = "what", .unit = Unit::kText, .text_fallback = "all", .choices = kChoices,
     .help = "which kernels to merge", .source = "chosen by the user"},
    {.name = "floor", .unit = Unit::kDuration, .fallback = 2000, .low = 1500, .high = 4000,
     .min = 0, .max = 1e6, .help = "a kernel takes this long whatever it does",
     .source = "docs/cost-model.md: shortest kernels of traces of V100, A100 and H100"},
    {.name = "passes", .unit = Unit::kNone, .fallback = 2.5, .low = 2, .high = 3, .min = 1,
     .max = 16, .help = "tensors that an elementwise kernel reads or writes, on average",
     .source = "one (unary) or two (binary) inputs and one output"},
    {.name = "kept", .unit = Unit::kShare, .fallback = 0.5, .low = 0, .high = 1, .min = 0,
     .max = 1, .help = "share of intermediate results that are stored anyway, for backward",
     .source = "design estimate, not measured"},
};

// Bytes that a fused optimizer moves per parameter, in fp32 (read parameter, gradient and state,
// write parameter and state), by how many kernels per parameter the recorded one needs.
double FusedBytes(size_t kernels_per_parameter) {
  if (kernels_per_parameter >= 6) return 28;  // Adam: p, g, m, v in; p, m, v out
  if (kernels_per_parameter >= 2) return 20;  // SGD with momentum: p, g, b in; p, b out
  return 12;                                  // SGD: p, g in; p out
}

class Fuse {
 public:
  Fuse(const Params& params, Editor& edit)
      : params_(params), edit_(edit), floor_(Duration::FromDouble(params["floor"])),
        groups_(edit) {}

  absl::Status Run() {
    std::string_view what = params_.text("what");
    if (what != "elementwise") FuseOptimizers();
    if (what != "optimizer") FuseElementwise();
    if (!edit_.changes().any()) {
      edit_.changes().notes.push_back(what == "optimizer"
                                          ? "no optimizer kernels that could be merged"
                                          : "no run of elementwise kernels of equal size");
    }
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }
  Duration DurationOf(TaskId t) const { return graph().task(t).duration; }

  // Below twice the floor a kernel's time says little about the bytes it moves.
  bool Moves(TaskId t) const { return DurationOf(t) > floor_ * 2; }

  void FuseOptimizers() {
    size_t before = 0, groups = 0, fused_already = 0;
    for (const std::vector<TaskId>& group : groups_.Optimizers(&fused_already)) {
      if (group.size() < 2) continue;
      size_t per_parameter = KernelsPerParameter(group);
      // An unfused kernel moves about `passes` tensors of 4 bytes an element.
      double ratio = std::min(
          1.0, FusedBytes(per_parameter) /
                   (4 * params_["passes"] * static_cast<double>(per_parameter)));
      Duration moving, longest;
      for (TaskId t : group) {
        if (Moves(t)) moving += DurationOf(t);
        else longest = std::max(longest, DurationOf(t));
      }
      before += group.size(), ++groups;
      Merge(group, "fused_optimizer", std::max(longest, moving.Scaled(ratio)),
            "optimizer kernels merged", /*whole_step=*/true);
    }
    if (groups > 0) {
      edit_.changes().notes.push_back(
          fmt::format("optimizer: {} kernels in {} steps become {}", before, groups, groups));
    } else if (fused_already > 0) {
      edit_.changes().notes.push_back("the optimizer is fused already");
    }
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

  void FuseElementwise() {
    size_t kernels = 0, groups = 0;
    for (const std::vector<TaskId>& run : groups_.ElementwiseRuns()) {
      Duration moving, longest;
      size_t movers = 0;
      for (TaskId t : run) {
        if (Moves(t)) moving += DurationOf(t), ++movers;
        else longest = std::max(longest, DurationOf(t));
      }
      double n = static_cast<double>(std::max<size_t>(movers, 1)), passes = params_["passes"];
      bool training = graph().task(run.front()).phase == Phase::kForward && groups_.has_backward();
      double saved = training ? 2 - params_["kept"] : 2;
      double ratio = std::max(passes * n - saved * (n - 1), 2.0) / (passes * n);
      Duration total;
      for (TaskId t : run) total += DurationOf(t);
      Duration fused = std::max(longest, moving.Scaled(std::min(1.0, ratio)));
      kernels += run.size(), ++groups;
      Merge(run, fmt::format("fused_elementwise_{}", run.size()), std::min(fused, total),
            "elementwise kernels merged", /*whole_step=*/false);
    }
    if (groups == 0) return;
    edit_.changes().notes.push_back(fmt::format(
        "elementwise: {} kernels become {}; bytes are told from their times", kernels, groups));
  }

  void Merge(const std::vector<TaskId>& group, std::string_view name, Duration duration,
             std::string_view cause, bool whole_step) {
    edit_.BeginCause(cause);
    std::vector<TaskId> host = groups_.HostBetween(group, whole_step);
    edit_.Fuse(group, name, duration);
    edit_.BeginCause(fmt::format("host time of {}", cause));
    for (TaskId t : host) {
      if (graph().task(t).removed) continue;
      // The gap after an op is time of the program around it, not of the op.
      Duration gap = whole_step ? Duration{} : graph().task(t).gap;
      edit_.Remove({&t, 1});
      if (gap != Duration{}) edit_.SetGap(t, gap);
    }
  }

  const Params& params_;
  Editor& edit_;
  Duration floor_;
  FuseGroups groups_;
};

absl::Status Run(const Params& params, Editor& edit) { return Fuse(params, edit).Run(); }

}  // namespace

constinit const Transform kFuse = {
    .name = "fuse",
    .summary = "Optimizer and elementwise kernels are merged",
    .params = kParams,
    .apply = &Run,
    .model = "optimizer: the kernels of an optimizer step become one, which reads and writes each "
             "parameter, gradient and state once. elementwise: runs of elementwise kernels of "
             "equal size on one stream, with nothing else between them, become one that no "
             "longer writes and reads what passes between them. Times follow from bytes; where "
             "a kernel is so short that its time does not tell its bytes, the longest of them "
             "stands for all. Launches of the merged kernels, and the host time of their ops, "
             "are gone.",
    .ignores = "Fusion into matrix products, normalisation and reductions; limits of registers; "
               "optimizers whose fused form needs several launches.",
    .sources = "Daydream (ATC'20), section 5 (fused Adam, with bytes in place of the sum of "
               "times); NeuSight (ASPLOS'25) for merging by bytes",
};

}  // namespace daydream
