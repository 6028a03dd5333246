#include "transforms/scenario/option_run.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "transforms/scenario/option_action_run.h"
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
      return OptionError(file_, absl::StatusCode::kFailedPrecondition, "E0424",
                         program.memory_place, fmt::format("memory changes by {} bytes", *bytes),
                         "no GPU has that many", "write it as -1.5GB");
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
      return OptionError(
          file_, absl::StatusCode::kFailedPrecondition, "E0421", check.place,
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
      std::string cause = step.cause.empty() ? CauseOf(action) : step.cause;
      edit_.BeginCause(fmt::format("{} ({})", cause, file_.source().Tag(action.place)));
      const size_t before = Parts();
      DD_ASSIGN_OR_RETURN(
          const ActionResult result,
          RunAction(action, tasks,
                    {.file = file_, .values = *values_, .edit = edit_, .place = action.place}));
      other_work_ |= result.other_work;
      if (!std::holds_alternative<UseAction>(action.what)) {
        added_ += Parts() - std::min(before, Parts());
        DD_RETURN_IF_ERROR(CheckAdded(action.place));
      }
      Tell(result.skipped, action.place, tasks.size());
    }
    return absl::OkStatus();
  }

  void Tell(const Skipped& skipped, Place place, size_t of) {
    if (skipped.n == 0) return;
    if (matches_ != nullptr) matches_->back().skipped += skipped.n;
    edit_.changes().warnings.push_back(fmt::format("{}: {} of {} tasks stay as they are: {}",
                                                   file_.source().Tag(place), skipped.n, of,
                                                   skipped.sentence));
  }

  size_t Parts() const { return graph().size() + graph().edges().size(); }

  // Built-in optimizations have limits of their own.
  absl::Status CheckAdded(Place place) const {
    const size_t most = std::max(kMostAdded, kMostAddedForEach * edit_.recorded_tasks());
    if (added_ <= most) return absl::OkStatus();
    return OptionError(
        file_, absl::StatusCode::kFailedPrecondition, "E0426", place,
        fmt::format("up to here the steps add {} tasks and dependencies", added_),
        fmt::format("the limit is {} for a trace of {} tasks; a selector also matches what "
                    "earlier steps added",
                    most, edit_.recorded_tasks()),
        "exclude what the file adds, as in {kind: kernel, not: {kernel: NAME}}");
  }

  const OptionFile& file_;
  const Params& params_;
  Editor& edit_;
  std::vector<OptionMatch>* matches_;
  std::unique_ptr<TaskValues> values_;
  size_t added_ = 0;         // tasks and edges, by the actions up to here
  bool other_work_ = false;  // on the GPU, by insert or remove
};

}  // namespace

absl::Status RunOptionFile(const OptionFile& file, const Params& params, Editor& edit,
                           std::vector<OptionMatch>* matches) {
  return OptionRun(file, params, edit, matches).Run();
}

}  // namespace daydream
