#include "python/daydream/binding/edit.h"

#include <cmath>
#include <map>

#include "python/daydream/binding/own_optimization.h"
#include "python/daydream/binding/raise.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/edits/inserted_kernel.h"
#include "transforms/scenario/option_steps.h"

namespace nb = nanobind;

namespace daydream {
namespace {

// As in option files: a million tasks, or four for each recorded one.

constexpr size_t kMostInserted = 1'000'000, kMostInsertedForEach = 4;
constexpr size_t kMostCauses = 1000;

[[noreturn]] void Refuse(std::string_view code, std::string what, std::string fix) {
  Raise(MakeStatus(absl::StatusCode::kInvalidArgument,
                   {.code = std::string(code), .what = std::move(what), .fix = std::move(fix)}));
}

Duration TimeOf(double ns) {
  if (!(ns >= 0) || ns > kLongestNs) {
    Refuse("E0424", fmt::format("{} ns is no time of a task", ns), "nanoseconds, 0 or more");
  }
  return Duration::FromDouble(ns);
}

Edit::Tasks Numbers(std::span<const TaskId> tasks) {
  Edit::Tasks numbers;
  numbers.reserve(tasks.size());
  for (TaskId t : tasks) numbers.push_back(static_cast<int64_t>(t.index()));
  return numbers;
}

const std::map<std::string, Relation>& Relations() {
  static const std::map<std::string, Relation> relations = {
      {"not", Relation::kNot},       {"launched_by", Relation::kLaunchedBy},
      {"inside", Relation::kInside}, {"before", Relation::kBefore},
      {"after", Relation::kAfter},   {"first", Relation::kFirst},
      {"last", Relation::kLast},     {"between", Relation::kBetween}};
  return relations;
}

}  // namespace

Editor& Edit::editor() {
  if (editor_ == nullptr) {
    Refuse("E0438", "this edit is over", "use it in the function that it was handed to");
  }
  return *editor_;
}

TaskId Edit::Valid(int64_t task) {
  if (task < 0 || static_cast<uint64_t>(task) >= graph().size()) {
    Refuse("E0438", fmt::format("there is no task {}", task), "the numbers that select() returns");
  }
  return TaskId(static_cast<size_t>(task));
}

std::vector<TaskId> Edit::Valid(const Tasks& tasks) {
  std::vector<TaskId> valid;
  valid.reserve(tasks.size());
  for (int64_t task : tasks) valid.push_back(Valid(task));
  return valid;
}

// GPU work of one stream in its order, which can become one.
std::vector<TaskId> Edit::OneLane(const Tasks& tasks) {
  std::vector<TaskId> valid = Valid(tasks);
  const std::string fix = "one of the lists that runs() returns";
  if (valid.empty()) Refuse("E0438", "no tasks to make one of", fix);
  for (size_t i = 0; i < valid.size(); ++i) {
    const daydream::Task& task = graph().task(valid[i]);
    if (!IsGpu(task.kind) || task.removed) {
      Refuse("E0438", fmt::format("task {} is no GPU work, or was removed", tasks[i]), fix);
    }
    TaskId t = i == 0 ? valid[0] : graph().task(valid[i - 1]).lane_next;
    while (t.valid() && t != valid[i]) t = graph().task(t).lane_next;
    if (!t.valid()) {
      Refuse("E0438", fmt::format("task {} does not follow {}", tasks[i], tasks[i - 1]), fix);
    }
  }
  return valid;
}

FuseGroups& Edit::groups() {
  if (groups_ == nullptr) groups_ = std::make_unique<FuseGroups>(editor());
  return *groups_;
}

Edit::Tasks Edit::Select(const std::string& selector, const std::string& relation) {
  Selector wanted = ValueOrRaise(Selector::Compile(selector));
  if (!relation.empty()) {
    const auto it = Relations().find(relation);
    if (it == Relations().end()) {
      Refuse("E0103", fmt::format("unknown relation '{}'", relation),
             "not, launched_by, inside, before, after, first, last or between");
    }
    wanted = Selector::Related(it->second, std::move(wanted));
  }
  return Numbers(wanted.Select(graph()));
}

std::vector<Edit::Tasks> Edit::Runs(const Tasks& tasks) {
  std::vector<bool> wanted(graph().size());
  for (TaskId t : Valid(tasks)) wanted[t.index()] = graph().task(t).kind == TaskKind::kKernel;
  std::vector<Tasks> runs;
  for (const std::vector<TaskId>& run : groups().RunsOf(wanted)) runs.push_back(Numbers(run));
  return runs;
}

std::vector<int64_t> Edit::TimesNs(const Tasks& tasks) {
  std::vector<int64_t> times;
  for (TaskId t : Valid(tasks)) times.push_back(graph().task(t).duration.ns);
  return times;
}

std::vector<std::string> Edit::Names(const Tasks& tasks) {
  std::vector<std::string> names;
  for (TaskId t : Valid(tasks)) names.emplace_back(graph().Name(graph().task(t).name));
  return names;
}

nb::dict Edit::Task(int64_t task) {
  const daydream::Task& t = graph().task(Valid(task));
  const Lane& lane = graph().lane(t.lane).lane;
  nb::dict facts;
  const std::string name(graph().Name(t.name)), on(graph().Name(lane.name));
  facts["name"] = nb::str(name.data(), name.size());
  facts["lane"] = nb::str(on.data(), on.size());
  facts["gpu"] = IsGpu(t.kind);
  facts["time_ns"] = t.duration.ns;
  facts["gap_ns"] = t.gap.ns;
  facts["step"] = t.step;
  facts["removed"] = t.removed;
  return facts;
}

void Edit::Cause(const std::string& what) {
  if (editor().causes().size() >= kMostCauses) {
    Refuse("E0426", fmt::format("more than {} causes", kMostCauses), "one for each kind of change");
  }
  editor().BeginCause(what);
}

void Edit::Note(const std::string& text) { editor().changes().notes.push_back(text); }

void Edit::Scale(const Tasks& tasks, double factor) {
  const std::vector<TaskId> valid = Valid(tasks);
  if (!(factor >= 0))
    Refuse("E0424", fmt::format("{} is no factor of a time", factor), "0 or more");
  for (TaskId t : valid) TimeOf(static_cast<double>(graph().task(t).duration.ns) * factor);
  editor().Scale(valid, factor);
}

void Edit::SetTime(const Tasks& tasks, double ns) {
  const Duration time = TimeOf(ns);
  for (TaskId t : Valid(tasks)) editor().SetDuration(t, time);
}

void Edit::Remove(const Tasks& tasks) {
  std::vector<TaskId> gpu, host;
  for (TaskId t : Valid(tasks)) (IsGpu(graph().task(t).kind) ? gpu : host).push_back(t);
  editor().RemoveWithLaunches(gpu);
  editor().Remove(host);
}

int64_t Edit::Insert(int64_t task, const std::string& name, double ns, bool after) {
  const TaskId at = Valid(task);
  const Duration time = TimeOf(ns);
  const size_t added = graph().size() - editor().recorded_tasks();
  if (added >= std::max(kMostInserted, kMostInsertedForEach * editor().recorded_tasks())) {
    Refuse("E0426", fmt::format("more than {} tasks were added", added), "insert less");
  }
  const daydream::Task beside = graph().task(at);
  if (IsGpu(beside.kind)) {
    if (!costs_) costs_ = MeasureHostCosts(graph());
    const NameId call = editor().graph().AddName("launch of " + name);
    return static_cast<int64_t>(InsertKernel(editor(),
                                             {.at = at,
                                              .after = after,
                                              .name = editor().graph().AddName(name),
                                              .duration = time,
                                              .op = editor().graph().AddName("op of " + name),
                                              .call = call},
                                             *costs_)
                                    .index());
  }
  daydream::Task host = CallBeside(beside, editor().graph().AddName(name), time);
  host.kind = TaskKind::kHost;
  const TaskId made = after ? editor().InsertAfter(at, host) : editor().InsertBefore(at, host);
  return static_cast<int64_t>(made.index());
}

int64_t Edit::Fuse(const Tasks& tasks, const std::string& name, double ns) {
  const std::vector<TaskId> valid = OneLane(tasks);
  return static_cast<int64_t>(editor().Fuse(valid, name, TimeOf(ns)).index());
}

double Edit::FusedTimeNs(const Tasks& tasks, double passes, double kept, double floor_ns) {
  if (!(passes >= 1 && passes <= 16) || !(kept >= 0 && kept <= 1)) {
    Refuse("E0424", "passes are from 1 to 16, what is kept is a share", "passes=2.5, kept=0.5");
  }
  const RunModel model{.floor = TimeOf(floor_ns), .passes = passes, .kept = kept};
  bool shaped = false;
  return static_cast<double>(groups().TimeOf(OneLane(tasks), model, &shaped).ns);
}

void Edit::Merge(const Tasks& tasks, const std::string& name, double ns, const std::string& cause) {
  const std::vector<TaskId> valid = OneLane(tasks);
  groups().Merge(valid, name, TimeOf(ns), cause, /*whole_step=*/false);
}

}  // namespace daydream
