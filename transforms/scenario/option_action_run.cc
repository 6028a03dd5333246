#include "transforms/scenario/option_action_run.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "graph/validate.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/roofline_times.h"
#include "transforms/edits/fuse_groups.h"
#include "transforms/scenario/option_edits.h"

namespace daydream {
namespace {

class ActionRun {
 public:
  explicit ActionRun(const ActionContext& in) : in_(in), edit_(in.edit) {}

  absl::StatusOr<ActionResult> Do(const ScaleAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    Skipped& skipped = result.skipped;
    if (action.time != nullptr) {
      Evaluation factor(*action.time, in_.values, tasks);
      std::vector<std::pair<TaskId, double>> factors;
      for (TaskId t : tasks) {
        double ns = static_cast<double>(std::max<int64_t>(graph().task(t).duration.ns, 1));
        DD_ASSIGN_OR_RETURN(auto value,
                            Number(skipped, factor, t, t, kLongestNs / ns, Unit::kFactor));
        if (value) factors.emplace_back(t, *value);
      }
      for (const auto& [t, value] : factors) ScaleTime(t, value);
    }
    if (action.bytes != nullptr) {
      Evaluation factor(*action.bytes, in_.values, tasks);
      for (TaskId t : tasks) {
        const TaskKind kind = graph().task(t).kind;
        if (kind != TaskKind::kMemcpy && kind != TaskKind::kMemset &&
            kind != TaskKind::kCollective) {
          skipped.Add("copies or collectives");
          continue;
        }
        double ns = static_cast<double>(std::max<int64_t>(graph().task(t).duration.ns, 1));
        DD_ASSIGN_OR_RETURN(auto value,
                            Number(skipped, factor, t, t, kLongestNs / ns, Unit::kFactor));
        if (!value) continue;
        ScaleTime(t, *value);
        const CopyDetail* copy = graph().Copy(t);
        if (copy == nullptr) continue;
        CopyDetail scaled = *copy;
        scaled.bytes =
            static_cast<uint64_t>(std::min(static_cast<double>(scaled.bytes) * *value, kMostBytes));
        edit_.SetCopy(t, scaled);
      }
    }
    if (action.roofline) DD_RETURN_IF_ERROR(ScaleToRoofline(action, tasks, skipped));
    return result;
  }

  absl::Status ScaleToRoofline(const ScaleAction& action, std::span<const TaskId> tasks,
                               Skipped& skipped) {
    RooflineTimes times(graph());
    std::unique_ptr<Evaluation> efficiency;
    if (action.efficiency != nullptr) {
      efficiency = std::make_unique<Evaluation>(*action.efficiency, in_.values, tasks);
    }
    std::vector<std::pair<TaskId, double>> shares;
    for (TaskId t : tasks) {
      const Task& task = graph().task(t);
      std::optional<Duration> least;
      if (task.kind == TaskKind::kKernel) least = times.Of(t, action.dtype);
      if (!least.has_value()) {
        skipped.Add("known roofline: shapes of its op, and a GPU whose data sheet has the format");
        continue;
      }
      double part = 1;
      if (efficiency != nullptr) {
        DD_ASSIGN_OR_RETURN(auto value, Number(skipped, *efficiency, t, t, 1));
        if (!value) continue;
        part = *value;
      }
      const double longest = part * static_cast<double>(task.duration.ns);
      const double share = longest > 0 ? static_cast<double>(least->ns) / longest : 1;
      shares.emplace_back(t, std::min(1.0, share));
    }
    for (const auto& [t, share] : shares) ScaleTime(t, share);
    return absl::OkStatus();
  }

  void ScaleTime(TaskId t, double factor) {
    if (factor == 1) return;
    edit_.Scale({&t, 1}, factor);
    const Task& task = graph().task(t);
    // Between host tasks the gap is host work, between GPU tasks it is latency.
    if (IsHost(task.kind) && task.gap > Duration{}) edit_.SetGap(t, task.gap.Scaled(factor));
  }

  absl::StatusOr<ActionResult> Do(const SetAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    Skipped& skipped = result.skipped;
    for (const auto& [expression, gap] : {std::pair(&action.time, false), {&action.gap, true}}) {
      if (*expression == nullptr) continue;
      Evaluation evaluation(**expression, in_.values, tasks);
      std::vector<std::pair<TaskId, Duration>> values;
      for (TaskId t : tasks) {
        DD_ASSIGN_OR_RETURN(auto value,
                            Number(skipped, evaluation, t, t, kLongestNs, Unit::kDuration));
        if (value) values.emplace_back(t, Duration::FromDouble(*value));
      }
      for (const auto& [t, value] : values) {
        if (gap && graph().task(t).gap != value) edit_.SetGap(t, value);
        // A wait has no time of its own; its end is an edge.
        bool own = graph().task(t).kind != TaskKind::kWait;
        if (!gap && own && graph().task(t).duration != value) edit_.SetDuration(t, value);
      }
    }
    for (TaskId t : tasks) {
      if (!action.name.empty()) edit_.Rename(t, action.name);
      if (action.memory) SetMemory(t, *action.memory);
    }
    return result;
  }

  void SetMemory(TaskId t, Memory memory) {
    const CopyDetail* copy = graph().Copy(t);
    if (copy == nullptr || graph().task(t).kind != TaskKind::kMemcpy) return;
    CopyDetail changed = *copy;
    for (Memory* m : {&changed.from, &changed.to}) {
      if (*m == Memory::kPageable || *m == Memory::kPinned) *m = memory;
    }
    edit_.SetCopy(t, changed);
  }

  absl::StatusOr<ActionResult> Do(const RemoveAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    std::vector<TaskId> gpu, host;
    std::vector<bool> gone(graph().size(), false);
    for (TaskId t : tasks) {
      (IsGpu(graph().task(t).kind) ? gpu : host).push_back(t);
      gone[t.index()] = true;
    }
    result.other_work = !gpu.empty();
    edit_.RemoveWithLaunches(gpu);
    edit_.Remove(host);
    if (!action.bridge) {
      edit_.DropEdges(
          [&](const Graph&, const Edge& e) { return gone[e.from.index()] || gone[e.to.index()]; });
    }
    return result;
  }

  absl::StatusOr<ActionResult> Do(const MoveAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    result.skipped.Add("such stream for them, or they are there already",
                       MoveToStream(edit_, tasks, action));
    return NoCycle(std::move(result));
  }

  absl::StatusOr<ActionResult> Do(const UnblockAction&, std::span<const TaskId> tasks) {
    ActionResult result;
    UnblockHost(edit_, tasks);
    return result;
  }

  absl::StatusOr<ActionResult> Do(const PriorityAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    std::vector<LaneId> lanes;
    for (TaskId t : tasks) {
      edit_.SetPriority(t, action.priority);
      lanes.push_back(graph().task(t).lane);
    }
    std::sort(lanes.begin(), lanes.end());
    lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
    for (LaneId lane : lanes) {
      edit_.AllowReorder(lane);
      edit_.changes().warnings.push_back(fmt::format(
          "{}: work of {} may run in any order that its dependencies allow",
          in_.file.source().Tag(in_.place), graph().Name(graph().lane(lane).lane.name)));
    }
    return result;
  }

  absl::StatusOr<ActionResult> Do(const ShiftAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    std::vector<TaskId> after = action.after.Select(graph(), &in_.values);
    result.skipped.Add("task there to start after, or call to move",
                       ShiftToPreviousStep(edit_, tasks, after, action.edge, action.launch));
    return NoCycle(std::move(result));
  }

  absl::StatusOr<ActionResult> Do(const FuseAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    Skipped& skipped = result.skipped;
    std::vector<TaskId> gpu;
    for (TaskId t : tasks) {
      if (IsGpu(graph().task(t).kind)) gpu.push_back(t);
    }
    auto groups = GroupTasks(graph(), gpu, action.group_by);
    FuseGroups hosts(edit_);
    size_t merged = 0, made = 0;
    for (const std::vector<TaskId>& group : groups) {
      if (group.size() < 2) continue;
      Evaluation time(*action.time, in_.values, group);
      DD_ASSIGN_OR_RETURN(auto value, Number(skipped, time, TaskId::None(), group.front(),
                                             kLongestNs, Unit::kDuration));
      if (!value) continue;
      merged += group.size(), ++made;
      std::vector<TaskId> host;
      if (!action.keep_host) host = hosts.HostBetween(group, /*everything=*/false);
      FuseGroup(action, group, Duration::FromDouble(*value));
      // The gap after an op is time of the program around it, not of the op.
      edit_.RemoveButGap(host);
    }
    if (made > 0) {
      edit_.changes().notes.push_back(fmt::format(
          "{}: {} kernels become {} {}", in_.file.transform().name, merged, made, action.name));
    }
    return result;
  }

  void FuseGroup(const FuseAction& action, const std::vector<TaskId>& group, Duration time) {
    if (!action.keep_launches) {
      edit_.Fuse(group, action.name, time);
      return;
    }
    edit_.SetDuration(group.front(), time);
    edit_.Rename(group.front(), action.name);
    edit_.Merge(std::span(group).subspan(1));
  }

  absl::StatusOr<ActionResult> Do(const InsertAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    Skipped& skipped = result.skipped;
    const HostCosts costs = MeasureHostCosts(graph());
    bool gpu = action.kind != TaskKind::kHost;
    Duration call = action.kind == TaskKind::kMemcpy ? costs.copy : costs.op;
    Evaluation time(*action.time, in_.values, tasks);
    std::unique_ptr<Evaluation> bytes;
    if (action.bytes) bytes = std::make_unique<Evaluation>(*action.bytes, in_.values, tasks);
    struct Made {
      TaskId anchor;
      Task task;
    };
    std::vector<Made> made;
    for (TaskId t : InRecordedOrder(graph(), tasks)) {
      TaskId anchor = t;
      if (!gpu && IsGpu(graph().task(t).kind)) anchor = edit_.LaunchOf(t);
      if (!anchor.valid() || (gpu && !IsGpu(graph().task(t).kind))) {
        skipped.Add(gpu ? "GPU work there to stand beside" : "call there to stand beside");
        continue;
      }
      DD_ASSIGN_OR_RETURN(auto value, Number(skipped, time, t, t, kLongestNs, Unit::kDuration));
      if (!value) continue;
      Task task{.duration = Duration::FromDouble(*value),
                .name = edit_.graph().AddName(action.name),
                .kind = action.kind};
      if (action.kind == TaskKind::kMemcpy) {
        CopyDetail copy{.from = action.from, .to = action.to};
        if (bytes) {
          DD_ASSIGN_OR_RETURN(auto size, Number(skipped, *bytes, t, t, kMostBytes, Unit::kBytes));
          if (!size) continue;
          copy.bytes = static_cast<uint64_t>(*size);
        }
        task.detail = edit_.graph().AddCopyDetail(copy);
      }
      made.push_back({anchor, task});
    }
    result.other_work = gpu && !made.empty();
    for (const Made& m : made) {
      LaneId stream = action.stream ? FindStream(edit_, *action.stream, graph().task(m.anchor).lane)
                                    : LaneId::None();
      InsertBeside(edit_, m.anchor, m.task, action, stream, call);
    }
    return NoCycle(std::move(result));
  }

  absl::StatusOr<ActionResult> Do(const LinkAction& action, std::span<const TaskId> tasks) {
    ActionResult result;
    Skipped& skipped = result.skipped;
    std::vector<TaskId> from = action.from.Select(graph(), &in_.values);
    if (action.unlink) {
      std::vector<bool> source(graph().size(), false), target(graph().size(), false);
      for (TaskId t : from) source[t.index()] = true;
      for (TaskId t : tasks) target[t.index()] = true;
      edit_.DropEdges([&](const Graph&, const Edge& e) {
        return source[e.from.index()] && target[e.to.index()];
      });
      return result;
    }
    std::unique_ptr<Evaluation> lag;
    if (action.lag) lag = std::make_unique<Evaluation>(*action.lag, in_.values, tasks);
    for (const auto& [a, b] : PairsInOrder(graph(), from, tasks)) {
      Duration delay;
      if (lag) {
        DD_ASSIGN_OR_RETURN(auto value, Number(skipped, *lag, b, b, kLongestNs, Unit::kDuration));
        if (!value) continue;
        delay = Duration::FromDouble(*value);
      }
      edit_.AddEdge(a, b, delay);
    }
    return NoCycle(std::move(result));
  }

  absl::StatusOr<ActionResult> Do(const UseAction& action, std::span<const TaskId>) {
    ActionResult result;
    for (const Application& application : action.applications) {
      DD_RETURN_IF_ERROR(application.transform->apply(application.params, edit_));
    }
    return result;
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  absl::Status Error(std::string_view code, std::string what, std::string why = {},
                     std::string fix = {}) const {
    return OptionError(in_.file, absl::StatusCode::kFailedPrecondition, code, in_.place,
                       std::move(what), std::move(why), std::move(fix));
  }

  // A value from 0 to `most`, both in `unit`. Nothing, and one more skipped, when the task lacks a
  // field of it.
  absl::StatusOr<std::optional<double>> Number(Skipped& skipped, Evaluation& evaluation, TaskId t,
                                               TaskId shown, double most,
                                               Unit unit = Unit::kFactor) {
    std::optional<double> value = evaluation.Of(t);
    if (!value) {
      const std::string missing(evaluation.missing());
      for (const OptionNeed& need : in_.file.program().needs) {
        if (need.word != missing) continue;
        return Error("E0423", fmt::format("'{}' has no {}", graph().TaskName(shown), missing),
                     fmt::format("the file needs {}", missing),
                     fmt::format("drop it from needs: to leave such tasks as they are"));
      }
      skipped.Add(missing);
      return std::optional<double>();
    }
    if (*value >= 0 && *value <= most) return value;
    return Error("E0424",
                 fmt::format("the value is {} for '{}'", RoundedValue(*value, unit),
                             graph().TaskName(shown)),
                 fmt::format("it has to be from 0 to {}", RoundedValue(most, unit)),
                 "limit it with max(A, 0), or choose with if(CONDITION, A, B)");
  }

  // `result`, unless work waits for itself now.
  absl::StatusOr<ActionResult> NoCycle(ActionResult result) {
    absl::Status valid = Validate(graph());
    if (valid.ok()) return result;
    return Error("E0425", "after this, work waits for itself", DiagnosticOf(valid).what);
  }

  const ActionContext& in_;
  Editor& edit_;
};

}  // namespace

void Skipped::Add(std::string_view lacking, uint64_t tasks) {
  if (tasks == 0) return;
  n += tasks;
  sentence = fmt::format("no {}", lacking);
}

absl::Status OptionError(const OptionFile& file, absl::StatusCode status, std::string_view code,
                         Place place, std::string what, std::string why, std::string fix) {
  return file.source().Error(status, place, 1,
                             {.code = std::string(code),
                              .what = fmt::format("{}: {}", file.transform().name, what),
                              .why = std::move(why),
                              .fix = std::move(fix)});
}

absl::StatusOr<ActionResult> RunAction(const OptionAction& action, std::span<const TaskId> tasks,
                                       const ActionContext& in) {
  ActionRun run(in);
  return std::visit([&](const auto& what) { return run.Do(what, tasks); }, action.what);
}

}  // namespace daydream
