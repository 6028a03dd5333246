// substitute: runs of selected kernels become one kernel with a time that the user gives.
#include <array>
#include <map>

#include "base/median.h"
#include "graph/scopes.h"
#include "transforms/core/select.h"
#include "transforms/core/transform.h"
#include "transforms/edits/fuse_groups.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr std::string_view kUnits[] = {"run", "op", "layer", "step"};
constexpr ParamSpec kSubstituteParams[] = {
    {.name = "select",
     .unit = Unit::kText,
     .help = "kernels to replace, such as kernel:winograd",
     .source = "chosen by the user",
     .required = true},
    {.name = "per",
     .unit = Unit::kText,
     .text_fallback = "run",
     .choices = kUnits,
     .help = "one new kernel for each run of matching kernels, op, layer and phase, or step",
     .source = "chosen by the user"},
    {.name = "factor",
     .unit = Unit::kFactor,
     .fallback = 1,
     .max = 1e6,
     .help = "time of the new kernel, of the sum of what it replaces",
     .source = "chosen by the user"},
    {.name = "time",
     .unit = Unit::kDuration,
     .fallback = 0,
     .max = 1e12,
     .help = "time of the new kernel, in place of factor",
     .source = "chosen by the user"},
    {.name = "like",
     .unit = Unit::kText,
     .text_fallback = "",
     .help = "selector of recorded kernels whose median is the new time, in place of factor",
     .source = "chosen by the user; the median is measured"},
    {.name = "name",
     .unit = Unit::kText,
     .text_fallback = "substituted",
     .help = "of the new kernel",
     .source = "chosen by the user"},
};

class Substitute {
 public:
  Substitute(const Params& params, Editor& edit) : params_(params), edit_(edit) {}

  absl::Status Run() {
    DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(params_.text("select")));
    wanted_.assign(graph().size(), false);
    size_t kernels = 0;
    for (TaskId t : selector.Select(graph())) {
      if (graph().task(t).kind != TaskKind::kKernel) continue;
      wanted_[t.index()] = true;
      ++kernels;
    }
    if (kernels == 0) {
      edit_.changes().notes.push_back(fmt::format("no kernel matches {}", selector.text()));
      return absl::OkStatus();
    }
    Duration like;
    if (!params_.text("like").empty()) {
      DD_ASSIGN_OR_RETURN(like, MedianOf(params_.text("like")));
    }
    FuseGroups groups(edit_);
    const auto found = Groups();
    for (const std::vector<TaskId>& group : found) {
      Duration sum;
      for (TaskId t : group) sum += graph().task(t).duration;
      const Duration then = !params_.text("like").empty() ? like
                            : params_.given("time")       ? Duration::FromDouble(params_["time"])
                                                          : sum.Scaled(params_["factor"]);
      groups.Merge(group, params_.text("name"), then,
                   fmt::format("{} in place of {}", params_.text("name"), selector.text()),
                   /*whole_step=*/false);
    }
    edit_.changes().notes.push_back(fmt::format("{} kernels become {}", kernels, found.size()));
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  absl::StatusOr<Duration> MedianOf(std::string_view pattern) const {
    DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(pattern));
    std::vector<Duration> times;
    for (TaskId t : selector.Select(graph())) {
      if (graph().task(t).kind == TaskKind::kKernel) times.push_back(graph().task(t).duration);
    }
    if (times.empty()) {
      return MakeStatus(absl::StatusCode::kFailedPrecondition,
                        {.code = "E0601",
                         .what = fmt::format("substitute: no kernel is like {}", pattern),
                         .effect = "the time of the new kernel is not known",
                         .fix = "give it with time= or factor="});
    }
    return Median(times);
  }

  std::vector<std::vector<TaskId>> Groups() const {
    std::vector<std::vector<TaskId>> groups;
    const std::string_view per = params_.text("per");
    for (const GraphLane& lane : graph().lanes()) {
      if (lane.lane.kind != LaneKind::kStream) continue;
      std::map<std::array<uint64_t, 3>, size_t> open;
      bool in_run = false;
      for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
        const Task& task = graph().task(t);
        if (task.removed || !IsGpu(task.kind)) continue;
        if (!wanted_[t.index()]) {
          in_run = false;
          continue;
        }
        if (per == "run") {
          bool same = in_run && graph().task(groups.back().back()).step == task.step;
          if (!same) groups.emplace_back();
          groups.back().push_back(t);
          in_run = true;
          continue;
        }
        std::array<uint64_t, 3> key{task.step, 0, 0};
        const ScopeId op = OutermostOp(graph(), graph().task(t).scope);
        if (per == "op") key[1] = op.valid() ? op.index() + 1 : 0;
        if (per == "op" && !op.valid()) key[2] = t.index();  // on its own
        if (per == "layer")
          key = {task.step, task.layer.index(), static_cast<uint64_t>(task.phase)};
        auto [it, inserted] = open.try_emplace(key, groups.size());
        if (inserted) groups.emplace_back();
        groups[it->second].push_back(t);
      }
    }
    return groups;
  }

  const Params& params_;
  Editor& edit_;
  std::vector<bool> wanted_;  // by task
};

absl::Status RunSubstitute(const Params& params, Editor& edit) {
  return Substitute(params, edit).Run();
}

}  // namespace

constinit const Transform kSubstitute = {
    .name = "substitute",
    .summary = "The selected kernels are replaced by others",
    .params = kSubstituteParams,
    .apply = &RunSubstitute,
    .model =
        "Each run of selected kernels (or all of an op, of a layer and phase, or of a step, on "
        "one stream) becomes one kernel with the time that was given: a factor of what it "
        "replaces, a time, or the median of recorded kernels that are like it. Launches of "
        "the replaced kernels, and the host time of their ops, are gone.",
    .ignores = "Whether the replacement computes the same; everything but time and launches.",
    .sources =
        "Jia et al.: MetaFlow (MLSys'19), relaxed graph substitutions; Daydream (ATC'20), "
        "section 5: the user gives the substitution",
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model =
        "None, as long as the new kernels need for backward what the replaced ones kept: the "
        "selection says nothing else.",
};

}  // namespace daydream
