#include "report/summary.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "costmodel/kernel_class.h"
#include "graph/scopes.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

std::string StreamName(const Graph& graph, const Task& task) {
  const Lane& lane = graph.lane(task.lane).lane;
  std::string_view name = graph.Name(lane.name);
  std::string label = name.empty() ? fmt::format("stream {}", lane.number) : std::string(name);
  return lane.device >= 0 ? fmt::format("GPU {} {}", lane.device, label) : label;
}

// Innermost operator around the code that did or launched the task.
std::string OpName(const Graph& graph, TaskId id) {
  for (ScopeId s : ScopesAround(graph, graph.task(id).scope)) {
    const Scope& scope = ScopeAt(graph, s);
    if (scope.kind == EventKind::kOp) return std::string(graph.Name(scope.name));
  }
  return "no operator";
}

Duration PerStep(Duration total, size_t steps) {
  return Duration::Ns(total.ns / static_cast<int64_t>(std::max<size_t>(steps, 1)));
}

struct GpuIntervals {
  std::vector<Interval> all, compute, comm;
};

GpuIntervals CollectGpu(const Graph& graph, const Timeline& timeline) {
  GpuIntervals out;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.removed || !IsGpu(task.kind)) continue;
    Interval busy{timeline.start[i], timeline.end[i]};
    out.all.push_back(busy);
    (task.kind == TaskKind::kCollective ? out.comm : out.compute).push_back(busy);
  }
  out.all = Union(std::move(out.all));
  out.compute = Union(std::move(out.compute));
  out.comm = Union(std::move(out.comm));
  return out;
}

class Grouping {
 public:
  Grouping(const Graph& graph, GroupBy by) : grouper_(graph, by) {}

  Group& Of(TaskId task) {
    std::string name = grouper_.Of(task);
    auto [it, is_new] = index_.try_emplace(name, groups_.size());
    if (is_new) groups_.push_back({.name = std::move(name), .time = {}, .path = {}});
    return groups_[it->second];
  }
  std::vector<Group> Take() { return std::move(groups_); }

 private:
  Grouper grouper_;
  std::unordered_map<std::string, size_t> index_;
  std::vector<Group> groups_;
};

void AddToPath(BoundBy& path, Resource resource, Duration d) {
  switch (resource) {
    case Resource::kGpu:
      path.gpu += d;
      break;
    case Resource::kCpu:
      path.cpu += d;
      break;
    case Resource::kComm:
      path.comm += d;
      break;
    case Resource::kData:
      path.data += d;
      break;
  }
}

}  // namespace

std::optional<GroupBy> ParseGroupBy(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(GroupBy::kStream); ++i) {
    if (Name(static_cast<GroupBy>(i)) == name) return static_cast<GroupBy>(i);
  }
  return std::nullopt;
}

std::string_view Name(GroupBy by) {
  constexpr std::string_view kNames[] = {"class", "op", "kernel", "layer", "phase", "stream"};
  static_assert(std::size(kNames) == static_cast<size_t>(GroupBy::kStream) + 1);
  return kNames[static_cast<size_t>(by)];
}

std::string_view Name(Phase phase) {
  constexpr std::string_view kNames[] = {"no phase",  "forward", "backward",
                                         "optimizer", "data",    "communication"};
  static_assert(std::size(kNames) == static_cast<size_t>(Phase::kComm) + 1);
  return kNames[static_cast<size_t>(phase)];
}

std::string_view Name(TaskKind kind) {
  constexpr std::string_view kNames[] = {"host",   "call",       "wait",  "kernel", "memcpy",
                                         "memset", "collective", "delay", "data"};
  static_assert(std::size(kNames) == static_cast<size_t>(TaskKind::kData) + 1);
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(Rule rule) {
  constexpr std::string_view kNames[] = {"lane order", "launch", "event wait", "host wait",
                                         "hand-off",   "queue",  "collective", "transform"};
  static_assert(std::size(kNames) == static_cast<size_t>(Rule::kTransform) + 1);
  return kNames[static_cast<size_t>(rule)];
}

std::string_view Name(Resource resource) {
  constexpr std::string_view kNames[] = {"GPU", "CPU", "comm", "data"};
  static_assert(std::size(kNames) == static_cast<size_t>(Resource::kData) + 1);
  return kNames[static_cast<size_t>(resource)];
}

Summary Summarize(const Graph& graph, const Timeline& timeline, GroupBy by) {
  Summary out;
  std::vector<Window> windows = CountedWindows(graph, timeline);
  out.steps = windows.size();
  out.step = StepTime(graph, timeline);
  out.periods = CountedPeriods(graph, timeline);
  Duration total;
  for (const Window& w : windows) total += w.length();
  out.window = PerStep(total, out.steps);

  GpuIntervals gpu = CollectGpu(graph, timeline);
  Duration busy = Inside(gpu.all, windows);
  out.gpu_busy = PerStep(busy, out.steps);
  out.comm = PerStep(Inside(gpu.comm, windows), out.steps);
  out.exposed_comm = PerStep(busy - Inside(gpu.compute, windows), out.steps);
  out.gpu_idle = out.window - out.gpu_busy;

  Grouping grouping(graph, by);
  bool whole = windows.size() == 1 && (graph.steps().size() < 2 || windows[0].step == 0);
  std::vector<bool> counted(graph.steps().size(), whole);
  for (const Window& w : windows) {
    if (w.step < counted.size()) counted[w.step] = true;
  }
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.removed || !IsGpu(task.kind)) continue;
    if (task.step < counted.size() ? !counted[task.step] : !whole) continue;
    Group& group = grouping.Of(TaskId(i));
    Duration length = timeline.end[i] - timeline.start[i];
    group.time += length;
    group.calls += 1;
    out.gpu_time += length;
    if (IsGuessed(graph, TaskId(i))) out.guessed += length;
  }
  ForEachClipped(PathOfSteps(graph, timeline, windows), windows,
                 [&](const PathSegment& s, Duration d) {
                   AddToPath(out.path, s.resource, d);
                   if (s.task.valid()) grouping.Of(s.task).path += d;
                 });

  out.groups = grouping.Take();
  for (Group& g : out.groups) {
    g.time = PerStep(g.time, out.steps);
    g.path = PerStep(g.path, out.steps);
    g.calls /= static_cast<double>(out.steps);
  }
  for (Duration* d : {&out.path.gpu, &out.path.cpu, &out.path.comm, &out.path.data, &out.gpu_time,
                      &out.guessed}) {
    *d = PerStep(*d, out.steps);
  }
  std::sort(out.groups.begin(), out.groups.end(), [](const Group& a, const Group& b) {
    return a.time != b.time ? a.time > b.time : a.name < b.name;
  });
  return out;
}

std::vector<Group> WithOthers(const std::vector<Group>& groups, size_t top) {
  // One group alone is shown by its own name.
  if (groups.size() <= top + 1) return groups;
  std::vector<Group> out(groups.begin(), groups.begin() + static_cast<ptrdiff_t>(top));
  Group rest{.name = fmt::format("[{} others]", groups.size() - top), .time = {}, .path = {}};
  for (size_t i = top; i < groups.size(); ++i) {
    rest.time += groups[i].time;
    rest.calls += groups[i].calls;
    rest.path += groups[i].path;
  }
  out.push_back(std::move(rest));
  return out;
}

bool IsGuessed(const Graph& graph, TaskId id) {
  const Task& task = graph.task(id);
  return task.event == Id<void>::kNoneValue && graph.TaskName(id) == "(unrecorded)";
}

namespace {

// Those of `stretches`, which are in time order and do not overlap, that touch `window`.
template <class Stretch>
std::span<const Stretch> Touching(const std::vector<Stretch>& stretches, const Window& window) {
  const auto begin = std::partition_point(stretches.begin(), stretches.end(),
                                          [&](const auto& s) { return s.end <= window.begin; });
  const auto end = std::partition_point(begin, stretches.end(),
                                        [&](const auto& s) { return s.begin < window.end; });
  return {begin, end};
}

}  // namespace

std::vector<StepSummary> SummarizeSteps(const Graph& graph, const Timeline& timeline) {
  const GpuIntervals gpu = CollectGpu(graph, timeline);
  const std::vector<Window> windows = CountedWindows(graph, timeline);
  const std::vector<PathSegment> path = PathOfSteps(graph, timeline, windows);
  std::vector<StepSummary> out;
  for (const Window& w : windows) {
    const std::span<const Window> only(&w, 1);
    StepSummary& s = out.emplace_back();
    s.step = w.step;
    if (w.step < graph.steps().size()) s.recorded = graph.steps()[w.step].recorded_period;
    s.window = w.length();
    s.gpu_busy = Inside(Touching(gpu.all, w), only);
    s.exposed_comm = s.gpu_busy - Inside(Touching(gpu.compute, w), only);
    s.gpu_idle = s.window - s.gpu_busy;
    ForEachClipped(Touching(path, w), only,
                   [&](const PathSegment& p, Duration d) { AddToPath(s.path, p.resource, d); });
  }
  return out;
}

namespace {

std::string GroupOfKnown(const Graph& graph, TaskId id, GroupBy by) {
  const Task& task = graph.task(id);
  bool on_gpu = IsGpu(task.kind) || task.kind == TaskKind::kDelay;
  // As the resources of the critical path have it: a wait for a batch is no work.
  std::string beside_gpu = task.phase == Phase::kData ? "data" : "CPU work";
  std::string name;
  switch (by) {
    case GroupBy::kClass:
      if (!on_gpu) return beside_gpu;
      name = task.kind == TaskKind::kKernel
                 ? std::string(KernelClassName(ClassifyKernel(graph.TaskName(id)).kind))
                 : std::string(Name(task.kind));
      break;
    case GroupBy::kOp:
      name = OpName(graph, id);
      break;
    case GroupBy::kKernel:
      if (!on_gpu) return beside_gpu;
      name = std::string(graph.TaskName(id));
      break;
    case GroupBy::kLayer:
      name = task.layer.valid() && task.layer.index() < graph.layers().size()
                 ? std::string(graph.Name(graph.layers()[task.layer.index()].name))
                 : "no layer";
      break;
    case GroupBy::kPhase:
      name = std::string(Name(task.phase));
      break;
    case GroupBy::kStream:
      if (!on_gpu) return beside_gpu;
      name = StreamName(graph, task);
      break;
  }
  return name.empty() ? "(no name)" : name;
}

}  // namespace

std::string GroupOf(const Graph& graph, TaskId id, GroupBy by) {
  if (!IsGuessed(graph, id)) return GroupOfKnown(graph, id, by);
  const bool by_name = by == GroupBy::kClass || by == GroupBy::kKernel;
  return by_name ? std::string(kGuessed)
                 : fmt::format("{} ({})", GroupOfKnown(graph, id, by), kGuessed);
}

std::string Grouper::Of(TaskId id) {
  const Task& task = graph_.task(id);
  if (by_ != GroupBy::kClass || task.kind != TaskKind::kKernel) return GroupOf(graph_, id, by_);
  auto [it, is_new] = class_of_name_.try_emplace(task.name.value);
  if (is_new) it->second = GroupOf(graph_, id, by_);
  return it->second;
}

}  // namespace daydream
