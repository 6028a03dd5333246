#include "transforms/scenario/option_run.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "graph/validate.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/roofline_times.h"
#include "transforms/edits/fuse_groups.h"
#include "transforms/scenario/option_edits.h"
#include "transforms/scenario/task_values.h"

namespace daydream {
namespace {

// Tasks and dependencies that the steps of a file may add: so many in any graph, and more in one
// that has more tasks itself. Selectors see what earlier steps added, so that a few lines can ask
// for any number.
constexpr size_t kMostAdded = 1'000'000, kMostAddedForEach = 4;
constexpr char kOtherWork[] = "what GPU work keeps that is added or removed (memory: can say)";

class OptionRun {
 public:
  OptionRun(const OptionFile& file, const Params& params, Editor& edit,
            std::vector<OptionMatch>* matches)
      : file_(file), params_(params), edit_(edit), matches_(matches) {}

  absl::Status Run() {
    NewValues();
    DD_RETURN_IF_ERROR(CheckNeeds(file_, graph(), *values_));
    for (const OptionProgram::Definition& d : file_.program().define) {
      Tell(fmt::format("define {}", d.name), d.place, d.selector);
    }
    DD_RETURN_IF_ERROR(RunChecks());
    size_t number = 0;
    for (const OptionStep& step : file_.program().steps) {
      DD_RETURN_IF_ERROR(RunStep(step, ++number));
    }
    return TellMemory();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  void NewValues() {
    values_ = std::make_unique<TaskValues>(graph(), params_, file_.transform().params);
  }

  absl::Status Error(absl::StatusCode status, std::string_view code, Place place, std::string what,
                     std::string why = {}, std::string fix = {}) const {
    return file_.source().Error(status, place, 1,
                                {.code = std::string(code),
                                 .what = fmt::format("{}: {}", file_.transform().name, what),
                                 .why = std::move(why),
                                 .fix = std::move(fix)});
  }

  // Adds what `tasks` are to the report of matches.
  void Report(std::string what, Place place, std::span<const TaskId> tasks) {
    if (matches_ == nullptr) return;
    OptionMatch match{.what = std::move(what), .line = place.line, .tasks = tasks.size()};
    for (TaskId t : tasks) {
      std::string name(graph().TaskName(t));
      auto& names = match.names;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      if (names.size() == 3) break;
    }
    matches_->push_back(std::move(match));
  }

  void Tell(std::string what, Place place, const Selector& selector) {
    if (matches_ == nullptr) return;
    Report(std::move(what), place, selector.Select(graph(), values_.get()));
  }

  // What the file says of the peak of GPU memory.
  absl::Status TellMemory() {
    const OptionProgram& program = file_.program();
    if (program.memory == nullptr) {
      if (other_work_) edit_.changes().memory.push_back({.what = kOtherWork, .unknown = true});
      return absl::OkStatus();
    }
    const std::optional<double> bytes = Evaluation(*program.memory, *values_).Of(TaskId::None());
    const bool known = bytes.has_value() && std::abs(*bytes) <= kMostBytes;
    if (bytes.has_value() && !known) {
      return Error(absl::StatusCode::kFailedPrecondition, "E0424", program.memory_place,
                   fmt::format("memory changes by {} bytes", *bytes), "no GPU has that many",
                   "write it as -1.5GB");
    }
    edit_.changes().memory.push_back(
        {.what = fmt::format("as {} says", file_.source().Tag(program.memory_place)),
         .bytes = known ? std::llround(*bytes) : 0,
         .estimate = true,
         .unknown = !known});
    return absl::OkStatus();
  }

  absl::Status RunChecks() {
    for (const OptionCheck& check : file_.program().checks) {
      std::vector<TaskId> tasks = check.of.Select(graph(), values_.get());
      Report("check", check.place, tasks);
      if (tasks.size() >= check.at_least && tasks.size() <= check.at_most) continue;
      bool few = tasks.size() < check.at_least;
      return Error(
          absl::StatusCode::kFailedPrecondition, "E0421", check.place,
          fmt::format("{} matches {} tasks of this trace, not {} {}", check.of.text(), tasks.size(),
                      few ? "at least" : "at most", few ? check.at_least : check.at_most),
          "the file checks this so that a selector that is wrong does not look like no gain",
          fmt::format("daydream opt check {} --trace TRACE", file_.path()));
    }
    return absl::OkStatus();
  }

  absl::Status RunStep(const OptionStep& step, size_t number) {
    NewValues();
    std::vector<TaskId> tasks;
    if (step.select) tasks = step.select->Select(graph(), values_.get());
    std::string verbs;
    for (const OptionAction& a : step.actions) verbs += (verbs.empty() ? "" : ", ") + a.verb;
    Report(fmt::format("step {}: {}", number, verbs), step.place, tasks);
    if (step.select && tasks.empty()) {
      edit_.changes().warnings.push_back(
          fmt::format("{}: {} matched nothing", file_.source().Tag(step.place), verbs));
      return absl::OkStatus();
    }
    for (const OptionAction& action : step.actions) {
      skipped_ = 0;
      missing_.clear();
      place_ = action.place;
      std::string cause = step.cause.empty() ? CauseOf(action) : step.cause;
      edit_.BeginCause(fmt::format("{} ({})", cause, file_.source().Tag(action.place)));
      const size_t before = Parts();
      DD_RETURN_IF_ERROR(
          std::visit([&](const auto& what) { return Do(what, tasks); }, action.what));
      if (!std::holds_alternative<UseAction>(action.what)) {
        added_ += Parts() - std::min(before, Parts());
        DD_RETURN_IF_ERROR(CheckAdded());
      }
      if (skipped_ > 0) {
        if (matches_ != nullptr) matches_->back().skipped += skipped_;
        edit_.changes().warnings.push_back(fmt::format("{}: {} of {} tasks stay as they are: no {}",
                                                       file_.source().Tag(action.place), skipped_,
                                                       tasks.size(), missing_));
      }
    }
    return absl::OkStatus();
  }

  size_t Parts() const { return graph().size() + graph().edges().size(); }

  // Built-in optimizations have limits of their own.
  absl::Status CheckAdded() const {
    const size_t most = std::max(kMostAdded, kMostAddedForEach * edit_.recorded_tasks());
    if (added_ <= most) return absl::OkStatus();
    return Error(
        absl::StatusCode::kFailedPrecondition, "E0426", place_,
        fmt::format("up to here the steps add {} tasks and dependencies", added_),
        fmt::format("the limit is {} for a trace of {} tasks; a selector also matches what "
                    "earlier steps added",
                    most, edit_.recorded_tasks()),
        "exclude what the file adds, as in {kind: kernel, not: {kernel: NAME}}");
  }

  // A value from 0 to `most`, both in `unit`. Nothing, and one more skipped, when the task lacks a
  // field of it.
  absl::StatusOr<std::optional<double>> Number(Evaluation& evaluation, TaskId t, TaskId shown,
                                               double most, Unit unit = Unit::kFactor) {
    std::optional<double> value = evaluation.Of(t);
    if (!value) {
      missing_ = evaluation.missing();
      for (const OptionNeed& need : file_.program().needs) {
        if (need.word != missing_) continue;
        return Error(absl::StatusCode::kFailedPrecondition, "E0423", place_,
                     fmt::format("'{}' has no {}", graph().TaskName(shown), missing_),
                     fmt::format("the file needs {}", missing_),
                     fmt::format("drop it from needs: to leave such tasks as they are"));
      }
      ++skipped_;
      return std::optional<double>();
    }
    if (*value >= 0 && *value <= most) return value;
    return Error(absl::StatusCode::kFailedPrecondition, "E0424", place_,
                 fmt::format("the value is {} for '{}'", RoundedValue(*value, unit),
                             graph().TaskName(shown)),
                 fmt::format("it has to be from 0 to {}", RoundedValue(most, unit)),
                 "limit it with max(A, 0), or choose with if(CONDITION, A, B)");
  }

  absl::Status NoCycle() {
    absl::Status valid = Validate(graph());
    if (valid.ok()) return valid;
    return Error(absl::StatusCode::kFailedPrecondition, "E0425", place_,
                 "after this, work waits for itself", DiagnosticOf(valid).what);
  }

  absl::Status Do(const ScaleAction& action, std::span<const TaskId> tasks) {
    if (action.time != nullptr) {
      Evaluation factor(*action.time, *values_, tasks);
      std::vector<std::pair<TaskId, double>> factors;
      for (TaskId t : tasks) {
        double ns = static_cast<double>(std::max<int64_t>(graph().task(t).duration.ns, 1));
        DD_ASSIGN_OR_RETURN(auto value, Number(factor, t, t, kLongestNs / ns, Unit::kFactor));
        if (value) factors.emplace_back(t, *value);
      }
      for (const auto& [t, value] : factors) ScaleTime(t, value);
    }
    if (action.bytes != nullptr) {
      Evaluation factor(*action.bytes, *values_, tasks);
      for (TaskId t : tasks) {
        const TaskKind kind = graph().task(t).kind;
        if (kind != TaskKind::kMemcpy && kind != TaskKind::kMemset &&
            kind != TaskKind::kCollective) {
          ++skipped_;
          missing_ = "copies or collectives";
          continue;
        }
        double ns = static_cast<double>(std::max<int64_t>(graph().task(t).duration.ns, 1));
        DD_ASSIGN_OR_RETURN(auto value, Number(factor, t, t, kLongestNs / ns, Unit::kFactor));
        if (!value) continue;
        ScaleTime(t, *value);
        const CopyDetail* copy = graph().Copy(t);
        if (copy == nullptr) continue;
        CopyDetail scaled = *copy;
        scaled.bytes =
            static_cast<uint64_t>(std::min(static_cast<double>(scaled.bytes) * *value, kMostBytes));
        edit_.graph().mutable_task(t).detail = edit_.graph().AddCopyDetail(scaled);
      }
    }
    return action.roofline ? ScaleToRoofline(action, tasks) : absl::OkStatus();
  }

  absl::Status ScaleToRoofline(const ScaleAction& action, std::span<const TaskId> tasks) {
    RooflineTimes times(graph());
    std::unique_ptr<Evaluation> efficiency;
    if (action.efficiency != nullptr) {
      efficiency = std::make_unique<Evaluation>(*action.efficiency, *values_, tasks);
    }
    std::vector<std::pair<TaskId, double>> shares;
    for (TaskId t : tasks) {
      const Task& task = graph().task(t);
      std::optional<Duration> least;
      if (task.kind == TaskKind::kKernel) least = times.Of(t, action.dtype);
      if (!least.has_value()) {
        ++skipped_;
        missing_ = "known roofline: shapes of its op, and a GPU whose data sheet has the format";
        continue;
      }
      double part = 1;
      if (efficiency != nullptr) {
        DD_ASSIGN_OR_RETURN(auto value, Number(*efficiency, t, t, 1));
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

  absl::Status Do(const SetAction& action, std::span<const TaskId> tasks) {
    for (const auto& [expression, gap] : {std::pair(&action.time, false), {&action.gap, true}}) {
      if (*expression == nullptr) continue;
      Evaluation evaluation(**expression, *values_, tasks);
      std::vector<std::pair<TaskId, Duration>> values;
      for (TaskId t : tasks) {
        DD_ASSIGN_OR_RETURN(auto value, Number(evaluation, t, t, kLongestNs, Unit::kDuration));
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
      if (!action.name.empty()) {
        edit_.graph().mutable_task(t).name = edit_.graph().AddName(action.name);
      }
      if (action.memory) SetMemory(t, *action.memory);
    }
    return absl::OkStatus();
  }

  void SetMemory(TaskId t, Memory memory) {
    const CopyDetail* copy = graph().Copy(t);
    if (copy == nullptr || graph().task(t).kind != TaskKind::kMemcpy) return;
    CopyDetail changed = *copy;
    for (Memory* m : {&changed.from, &changed.to}) {
      if (*m == Memory::kPageable || *m == Memory::kPinned) *m = memory;
    }
    edit_.graph().mutable_task(t).detail = edit_.graph().AddCopyDetail(changed);
  }

  absl::Status Do(const RemoveAction& action, std::span<const TaskId> tasks) {
    std::vector<TaskId> gpu, host;
    std::vector<bool> gone(graph().size(), false);
    for (TaskId t : tasks) {
      (IsGpu(graph().task(t).kind) ? gpu : host).push_back(t);
      gone[t.index()] = true;
    }
    other_work_ |= !gpu.empty();
    edit_.RemoveWithLaunches(gpu);
    edit_.Remove(host);
    if (!action.bridge) {
      edit_.DropEdges(
          [&](const Graph&, const Edge& e) { return gone[e.from.index()] || gone[e.to.index()]; });
    }
    return absl::OkStatus();
  }

  absl::Status Do(const MoveAction& action, std::span<const TaskId> tasks) {
    skipped_ += MoveToStream(edit_, tasks, action);
    if (skipped_ > 0) missing_ = "such stream for them, or they are there already";
    return NoCycle();
  }

  absl::Status Do(const UnblockAction&, std::span<const TaskId> tasks) {
    UnblockHost(edit_, tasks);
    return absl::OkStatus();
  }

  absl::Status Do(const PriorityAction& action, std::span<const TaskId> tasks) {
    std::vector<LaneId> lanes;
    for (TaskId t : tasks) {
      edit_.graph().mutable_task(t).priority = action.priority;
      lanes.push_back(graph().task(t).lane);
    }
    std::sort(lanes.begin(), lanes.end());
    lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
    for (LaneId lane : lanes) {
      edit_.AllowReorder(lane);
      ++edit_.changes().edges;
      edit_.changes().warnings.push_back(
          fmt::format("{}: work of {} may run in any order that its dependencies allow",
                      file_.source().Tag(place_), graph().Name(graph().lane(lane).lane.name)));
    }
    return absl::OkStatus();
  }

  absl::Status Do(const ShiftAction& action, std::span<const TaskId> tasks) {
    std::vector<TaskId> after = action.after.Select(graph(), values_.get());
    size_t stayed = ShiftToPreviousStep(edit_, tasks, after, action.edge, action.launch);
    skipped_ += stayed;
    if (stayed > 0) missing_ = "task there to start after, or call to move";
    return NoCycle();
  }

  absl::Status Do(const FuseAction& action, std::span<const TaskId> tasks) {
    std::vector<TaskId> gpu;
    for (TaskId t : tasks) {
      if (IsGpu(graph().task(t).kind)) gpu.push_back(t);
    }
    auto groups = GroupTasks(graph(), gpu, action.group_by);
    FuseGroups hosts(edit_);
    size_t merged = 0, made = 0;
    for (const std::vector<TaskId>& group : groups) {
      if (group.size() < 2) continue;
      Evaluation time(*action.time, *values_, group);
      DD_ASSIGN_OR_RETURN(auto value,
                          Number(time, TaskId::None(), group.front(), kLongestNs, Unit::kDuration));
      if (!value) continue;
      merged += group.size(), ++made;
      std::vector<TaskId> host;
      if (!action.keep_host) host = hosts.HostBetween(group, /*everything=*/false);
      FuseGroup(action, group, Duration::FromDouble(*value));
      for (TaskId t : host) {
        if (graph().task(t).removed) continue;
        // The gap after an op is time of the program around it, not of the op.
        Duration gap = graph().task(t).gap;
        edit_.Remove({&t, 1});
        if (gap != Duration{}) edit_.SetGap(t, gap);
      }
    }
    if (made > 0) {
      edit_.changes().notes.push_back(fmt::format(
          "{}: {} kernels become {} {}", file_.transform().name, merged, made, action.name));
    }
    return absl::OkStatus();
  }

  void FuseGroup(const FuseAction& action, const std::vector<TaskId>& group, Duration time) {
    if (!action.keep_launches) {
      edit_.Fuse(group, action.name, time);
      return;
    }
    edit_.SetDuration(group.front(), time);
    edit_.graph().mutable_task(group.front()).name = edit_.graph().AddName(action.name);
    edit_.Remove(std::span(group).subspan(1));
    for (size_t i = 1; i < group.size(); ++i) edit_.graph().mutable_task(group[i]).merged = true;
  }

  absl::Status Do(const InsertAction& action, std::span<const TaskId> tasks) {
    const HostCosts costs = MeasureHostCosts(graph());
    bool gpu = action.kind != TaskKind::kHost;
    Duration call = action.kind == TaskKind::kMemcpy ? costs.copy : costs.op;
    Evaluation time(*action.time, *values_, tasks);
    std::unique_ptr<Evaluation> bytes;
    if (action.bytes) bytes = std::make_unique<Evaluation>(*action.bytes, *values_, tasks);
    struct Made {
      TaskId anchor;
      Task task;
    };
    std::vector<Made> made;
    for (TaskId t : InRecordedOrder(graph(), tasks)) {
      TaskId anchor = t;
      if (!gpu && IsGpu(graph().task(t).kind)) anchor = edit_.LaunchOf(t);
      if (!anchor.valid() || (gpu && !IsGpu(graph().task(t).kind))) {
        ++skipped_;
        missing_ = gpu ? "GPU work there to stand beside" : "call there to stand beside";
        continue;
      }
      DD_ASSIGN_OR_RETURN(auto value, Number(time, t, t, kLongestNs, Unit::kDuration));
      if (!value) continue;
      Task task{.duration = Duration::FromDouble(*value),
                .name = edit_.graph().AddName(action.name),
                .kind = action.kind};
      if (action.kind == TaskKind::kMemcpy) {
        CopyDetail copy{.from = action.from, .to = action.to};
        if (bytes) {
          DD_ASSIGN_OR_RETURN(auto size, Number(*bytes, t, t, kMostBytes, Unit::kBytes));
          if (!size) continue;
          copy.bytes = static_cast<uint64_t>(*size);
        }
        task.detail = edit_.graph().AddCopyDetail(copy);
      }
      made.push_back({anchor, task});
    }
    other_work_ |= gpu && !made.empty();
    for (const Made& m : made) {
      LaneId stream = action.stream ? FindStream(edit_, *action.stream, graph().task(m.anchor).lane)
                                    : LaneId::None();
      InsertBeside(edit_, m.anchor, m.task, action, stream, call);
    }
    return NoCycle();
  }

  absl::Status Do(const LinkAction& action, std::span<const TaskId> tasks) {
    std::vector<TaskId> from = action.from.Select(graph(), values_.get());
    if (action.unlink) {
      std::vector<bool> source(graph().size(), false), target(graph().size(), false);
      for (TaskId t : from) source[t.index()] = true;
      for (TaskId t : tasks) target[t.index()] = true;
      edit_.DropEdges([&](const Graph&, const Edge& e) {
        return source[e.from.index()] && target[e.to.index()];
      });
      return absl::OkStatus();
    }
    std::unique_ptr<Evaluation> lag;
    if (action.lag) lag = std::make_unique<Evaluation>(*action.lag, *values_, tasks);
    for (const auto& [a, b] : PairsInOrder(graph(), from, tasks)) {
      Duration delay;
      if (lag) {
        DD_ASSIGN_OR_RETURN(auto value, Number(*lag, b, b, kLongestNs, Unit::kDuration));
        if (!value) continue;
        delay = Duration::FromDouble(*value);
      }
      edit_.AddEdge(a, b, delay);
    }
    return NoCycle();
  }

  absl::Status Do(const UseAction& action, std::span<const TaskId>) {
    for (const Application& application : action.applications) {
      DD_RETURN_IF_ERROR(application.transform->apply(application.params, edit_));
    }
    return absl::OkStatus();
  }

  const OptionFile& file_;
  const Params& params_;
  Editor& edit_;
  std::vector<OptionMatch>* matches_;
  std::unique_ptr<TaskValues> values_;
  Place place_;              // of the action that runs
  uint64_t skipped_ = 0;     // tasks that it leaves as they are
  std::string missing_;      // what they lack
  size_t added_ = 0;         // tasks and edges, by the actions up to here
  bool other_work_ = false;  // on the GPU, by insert or remove
};

}  // namespace

absl::Status RunOptionFile(const OptionFile& file, const Params& params, Editor& edit,
                           std::vector<OptionMatch>* matches) {
  return OptionRun(file, params, edit, matches).Run();
}

}  // namespace daydream
