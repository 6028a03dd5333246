#include "graph/step_windows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "graph/facts.h"

namespace daydream {
namespace {

constexpr Instant kEarly{std::numeric_limits<int64_t>::min()};
constexpr Instant kLate{std::numeric_limits<int64_t>::max()};
constexpr Duration kLeast{std::numeric_limits<int64_t>::min()};

std::vector<bool> StepsWithGpu(const Graph& graph) {
  std::vector<bool> has_gpu(graph.steps().size(), false);
  for (const Task& task : graph.tasks()) {
    if (task.step < has_gpu.size() && IsGpu(task.kind)) has_gpu[task.step] = true;
  }
  return has_gpu;
}

}  // namespace

std::optional<size_t> StepMarks::LoneOf(const Graph& graph) {
  const std::span<const GraphStep> steps = graph.steps();
  size_t first = 0;
  while (first < steps.size() && !steps[first].measured) ++first;
  if (first == 0 || first == steps.size()) return std::nullopt;
  return UnknownBefore(graph, first) || OnlyOne(graph) ? std::optional(first) : std::nullopt;
}

bool StepMarks::UnknownBefore(const Graph& graph, size_t step) {
  const GraphStep &before = graph.steps()[step - 1], &own = graph.steps()[step];
  return before.backlog || (own.begin.work.valid() && !before.begin.work.valid());
}

bool StepMarks::OnlyOne(const Graph& graph) {
  return std::ranges::count_if(graph.steps(), &GraphStep::measured) == 1;
}

LaunchCalls::LaunchCalls(const Graph& graph) : lanes_(graph.lanes().size()) {
  std::vector<uint32_t> count(graph.size());  // by task: of its launches
  std::vector<bool> launches(lanes_.size());  // by lane: whether any of its tasks does
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kLaunch) continue;
    ++count[e.from.index()];
    launches[graph.task(e.from).lane.index()] = true;
  }
  for (size_t l = 0; l < lanes_.size(); ++l) {
    if (!launches[l]) continue;
    for (TaskId t = graph.lanes()[l].last; t.valid(); t = graph.task(t).lane_prev) {
      if (count[t.index()] != 0) Take(t, count, lanes_[l]);
    }
  }
  FillEdges(graph, count);
}

void LaunchCalls::Take(TaskId t, std::vector<uint32_t>& count, std::vector<Call>& lane) {
  const uint32_t begin = size_;
  size_ += std::exchange(count[t.index()], begin);
  lane.push_back({t, begin, size_});
}

void LaunchCalls::FillEdges(const Graph& graph, std::vector<uint32_t>& count) {
  edges_.resize(size_);
  for (size_t i = 0; i < graph.edges().size(); ++i) {
    const Edge& e = graph.edges()[i];
    if (e.rule == Rule::kLaunch) edges_[count[e.from.index()]++] = static_cast<uint32_t>(i);
  }
}

std::shared_ptr<const LaunchCalls> LaunchCalls::Of(const Graph& graph) {
  return FactOfWiring<LaunchCalls>(graph, [&] { return LaunchCalls(graph); });
}

StepMarks::StepMarks(const Graph& graph)
    : StepMarks(
          graph, StepsWithGpu(graph), [&](TaskId t) { return graph.task(t).step; }, nullptr) {}

StepMarks::StepMarks(const Graph& graph, std::vector<bool> has_gpu, StepOf step_of,
                     const LaunchCalls* calls)
    : graph_(graph), has_gpu_(std::move(has_gpu)), lone_(LoneOf(graph)) {
  FindWaits();
  FindLaunches(step_of, calls);
}

StepMarks::StepMarks(const Graph& graph, std::vector<bool> has_gpu, const Launches& launches)
    : graph_(graph), has_gpu_(std::move(has_gpu)), lone_(LoneOf(graph)) {
  FindWaits();
  const auto [first, last] = StepsThatLaunch();
  launches_.resize(last);
  for (size_t s = first; s < last; ++s) launches_[s] = launches[s];
}

void StepMarks::FindWaits() {
  if (!lone_.has_value()) return;
  for (const Edge& e : graph_.edges()) {
    const Task &from = graph_.task(e.from), &to = graph_.task(e.to);
    const bool waits = e.rule == Rule::kHostWait && to.step == lone_ && from.step < to.step;
    if (waits && IsGpu(from.kind)) waits_.push_back({e.to, e.lag});
  }
}

std::pair<size_t, size_t> StepMarks::StepsThatLaunch() const {
  const auto counts = [&](size_t s) { return graph_.steps()[s].measured && HasGpu(s); };
  size_t first = 1, last = has_gpu_.size();
  while (first < has_gpu_.size() && !counts(first)) ++first;
  while (last > first && !counts(last - 1)) --last;
  if (first == lone_) last = first + 1;
  if (first != lone_ && (last < first + 2 || !HasGpu(first - 1))) return {};  // nothing before
  return {first - 1, last};
}

void StepMarks::FindLaunches(StepOf step_of, const LaunchCalls* calls) {
  const auto [first, last] = StepsThatLaunch();
  if (first == last) return;
  launches_.resize(last);
  std::shared_ptr<const LaunchCalls> own;
  if (calls == nullptr) calls = (own = LaunchCalls::Of(graph_)).get();
  for (const std::vector<LaunchCalls::Call>& lane : calls->lanes()) {
    size_t next = last;  // steps from here on have theirs of this lane: it is their last
    for (size_t i = 0; i < lane.size() && next > first; ++i) {
      const size_t step = step_of(lane[i].task);
      if (step >= next) continue;
      if (step < first) break;
      next = step;
      Launch of = {lane[i].task, kLeast};
      for (uint32_t k = lane[i].edges_begin; k < lane[i].edges_end; ++k) {
        const Edge& e = graph_.edges()[calls->edges()[k]];
        if (of.lag < e.lag) of = {e.from, e.lag, e.from_anchor};
      }
      launches_[step].push_back(of);
    }
  }
}

namespace {

// Marks by task, and whether that of task i is as the one before: found out faster than the mark.
struct MarksOfGraph {
  const Graph& graph;
  StepMark operator()(size_t i) const { return StepMarkOf(graph.tasks()[i]); }
  bool AsBefore(size_t i) const {
    const Task &x = graph.tasks()[i - 1], &y = graph.tasks()[i];
    return x.lane == y.lane && x.step == y.step && x.kind == y.kind;
  }
};

struct GivenMarks {
  std::span<const StepMark> marks;
  StepMark operator()(size_t i) const { return marks[i]; }
  bool AsBefore(size_t i) const {
    return std::bit_cast<uint32_t>(marks[i - 1]) == std::bit_cast<uint32_t>(marks[i]);
  }
};

void Widen(Instant first, Instant last, StepWindow& window) {
  window.begin = std::min(window.begin, first);
  window.end = std::max(window.end, last);
}

// Host work of the lone step up to that of the next, if there is one.
StepWindow UpToNext(const StepWindow& host, std::optional<Instant> next) {
  return {host.begin, next.has_value() ? std::max(*next, host.begin) : host.end};
}

// The host of the lone step begins where it first waits for earlier GPU work.
void BeginBehindWaits(const StepMarks& marks, std::span<const Instant> start,
                      std::span<StepExtent> extents) {
  if (marks.waits().empty() || !extents[*marks.lone()].host.has_value()) return;
  Instant arrives = kLate;
  for (const StepMarks::Wait& wait : marks.waits())
    arrives = std::min(arrives, start[wait.task.index()] - wait.lag);
  StepExtent& lone = extents[*marks.lone()];
  lone.host->begin = std::max(lone.host->begin, arrives);
  lone.host_led = false;
}

std::vector<bool> StepsWithGpu(TasksOfSteps& tasks) {
  std::vector<bool> has_gpu;
  has_gpu.reserve(tasks.steps().size());
  for (const TasksOfSteps::OfStep& of : tasks.steps()) has_gpu.push_back(of.gpu);
  return has_gpu;
}

std::vector<StepExtent> ExtentsOf(const Graph& graph, TasksOfSteps& tasks, const StepMarks& marks,
                                  std::span<const Instant> start, std::span<const Instant> end) {
  const std::span<const TasksOfSteps::OfStep> found = tasks.steps();
  std::vector<StepExtent> extents(found.size());
  for (size_t s = 0; s < found.size(); ++s) {
    const TasksOfSteps::OfStep& of = found[s];
    const StepWindow& work = of.gpu ? of.of_gpu : of.all;
    extents[s] = {
        .gpu = of.gpu,
        .any = of.any,
        .counts = graph.steps()[s].measured,
        .backlog = graph.steps()[s].backlog,
        .host_led = graph.steps()[s].host_led,
        .host_waited = graph.steps()[s].host_waited,
        .recorded = graph.steps()[s].recorded_period,
        .first = work.begin,
        .last = work.end,
        .all = {std::min(of.all.begin, of.of_gpu.begin), std::max(of.all.end, of.of_gpu.end)},
        .host = of.host};
    for (const StepMarks::Launch& l : marks.launches(s)) {
      const std::span<const Instant> at = l.from == Anchor::kEnd ? end : start;
      const Instant arrives = at[l.task.index()] + l.lag;
      extents[s].launched = std::max(extents[s].launched.value_or(kEarly), arrives);
    }
  }
  const std::optional<size_t> lone = marks.lone();
  if (lone.has_value() && extents[*lone].host.has_value())
    extents[*lone].host = UpToNext(*extents[*lone].host, tasks.next_host());
  BeginBehindWaits(marks, start, extents);
  return extents;
}

}  // namespace

TasksOfSteps::TasksOfSteps(const Graph& graph)
    : lone_(StepMarks::LoneOf(graph)), steps_(graph.steps().size()) {}

void TasksOfSteps::Add(const StepMark& mark, const StepWindow& window) {
  if (mark.step >= steps_.size()) return;
  OfStep& of = steps_[mark.step];
  of.any = true;
  of.gpu |= mark.gpu;
  Widen(window.begin, window.end, mark.gpu ? of.of_gpu : of.all);
  if (!mark.host || !lone_.has_value()) return;
  if (mark.step == *lone_ + 1) next_host_ = std::min(next_host_, window.begin);
  if (mark.step != *lone_) return;
  if (!of.host.has_value()) of.host = window;
  Widen(window.begin, window.end, *of.host);
}

template <class MarkOf>
std::vector<StepExtent> ExtentsBy(const Graph& graph, const MarkOf& mark_of,
                                  const LaunchCalls* calls, std::span<const Instant> start,
                                  std::span<const Instant> end) {
  TasksOfSteps tasks(graph);
  // Neighbours are mostly of one step and kind: what they have in common is noted once.
  for (size_t i = 0; i < graph.size();) {
    const StepMark mark = mark_of(i);
    StepWindow window = {start[i], end[i]};
    for (++i; i < graph.size() && mark_of.AsBefore(i); ++i) {
      if (start[i] < window.begin) window.begin = start[i];
      if (end[i] > window.end) window.end = end[i];
    }
    tasks.Add(mark, window);
  }
  const StepMarks marks(
      graph, StepsWithGpu(tasks), [&](TaskId t) { return mark_of(t.index()).step; }, calls);
  return ExtentsOf(graph, tasks, marks, start, end);
}

std::vector<StepExtent> StepExtents(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end) {
  if (graph.wiring() == 0) return ExtentsBy(graph, MarksOfGraph{graph}, nullptr, start, end);
  struct Marks {
    std::vector<StepMark> of_task;
  };
  const auto marks = FactOfWiring<Marks>(graph, [&] {
    Marks found;
    found.of_task.reserve(graph.size());
    for (const Task& task : graph.tasks()) found.of_task.push_back(StepMarkOf(task));
    return found;
  });
  return ExtentsBy(graph, GivenMarks{marks->of_task}, nullptr, start, end);
}

std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end) {
  return StepWindows(StepExtents(graph, start, end));
}

std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const StepMark> marks,
                                    const LaunchCalls& calls, std::span<const Instant> start,
                                    std::span<const Instant> end) {
  return StepWindows(ExtentsBy(graph, GivenMarks{marks}, &calls, start, end));
}

std::vector<StepExtent> StepExtents(const Graph& graph, TasksOfSteps tasks,
                                    const StepMarks::Launches* launches,
                                    std::span<const Instant> start, std::span<const Instant> end) {
  std::vector<bool> has_gpu = StepsWithGpu(tasks);
  const auto step_of = [&](TaskId t) { return graph.task(t).step; };
  const StepMarks marks = launches != nullptr
                              ? StepMarks(graph, std::move(has_gpu), *launches)
                              : StepMarks(graph, std::move(has_gpu), step_of, nullptr);
  return ExtentsOf(graph, tasks, marks, start, end);
}

namespace {

// The larger of what its host and its GPU take.
StepWindow LoneWindow(const StepExtent& own) {
  // A wait that ends before what it waits for, as damaged clocks have it, arrives behind the host.
  const StepWindow gpu = {own.first, own.last};
  const StepWindow host = {std::min(own.host->begin, own.host->end), own.host->end};
  return own.gpu && gpu.length() > host.length() ? gpu : host;
}

// Of the lone step with GPU work before it, which may be from before the recording.
StepWindow LoneWindowBehind(const StepExtent& previous, const StepExtent& own) {
  const StepWindow& host = *own.host;
  // A host that begins when the GPU is done does at the end of the step before what it does at the
  // end of its own.
  const bool follows = own.host_led && !previous.backlog;
  const Instant before = follows ? previous.last : std::max(previous.last, host.begin);
  const StepWindow ends = {std::min(before, own.last), own.last};
  if (!own.host_led || previous.last <= host.begin || !own.launched.has_value()) return ends;
  if (previous.launched.has_value() && !previous.backlog) {
    const StepWindow launches = {*previous.launched, *own.launched};
    return launches.length() > ends.length() ? launches : ends;
  }
  // The GPU was done with the step before while the host worked on this one, and waited for it:
  // what each had behind its host does not matter. What the host does when all is done is the end
  // of the recording.
  return {host.begin, std::max(host.end <= own.last ? host.end : *own.launched, host.begin)};
}

// `before`: where the step before ended, if it did.
StepWindow WindowBehind(const StepExtent& previous, const StepExtent& own, Instant before) {
  if (!own.host.has_value()) return {std::min(before, own.last), own.last};
  return own.gpu && previous.gpu ? LoneWindowBehind(previous, own) : LoneWindow(own);
}

// Counted steps that launches are known of, and the one before them: [first, last). Several where
// steps between them that do not count have none. None behind a lone step: its launches wait for no
// GPU work before it, as those of the others do.
std::vector<std::pair<size_t, size_t>> Launched(std::span<const StepExtent> extents) {
  const auto is_lone = [](const StepExtent& e) { return e.host.has_value(); };
  if (std::ranges::any_of(extents, is_lone)) return {};
  const auto launched = [&](size_t s) { return extents[s].launched.has_value(); };
  size_t begin = 0, end = extents.size();
  while (begin < end && !launched(begin)) ++begin;
  while (end > begin && !launched(end - 1)) --end;
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t first = begin, last = begin; first < end; first = last) {
    while (last < end && launched(last)) ++last;
    if (last >= first + 2 && (first == 0 || !extents[first].counts)) runs.emplace_back(first, last);
    for (; last < end && !launched(last); ++last) {
      if (extents[last].counts) return {};  // an edit took all of a step
    }
  }
  return runs;
}

// Where the launches of steps are further apart than their ends. Of steps the first of which found
// a GPU with work, a host that lost some of its lead launches slower than a GPU ends: there the
// steps are no longer than they were recorded.
void GoByLaunches(std::span<const StepExtent> extents, std::pair<size_t, size_t> steps,
                  std::span<StepWindow> windows) {
  const auto [first, last] = steps;
  const StepExtent &before = extents[first], &end = extents[last - 1];
  const Duration ends = end.last - before.last, launches = *end.launched - *before.launched;
  if (extents[first + 1].host_led && !extents[first + 1].host_waited) {
    if (launches <= ends) return;
    for (size_t s = first + 1; s < last; ++s) {
      windows[s] = {std::min(*extents[s - 1].launched, *extents[s].launched), *extents[s].launched};
    }
    return;
  }
  Duration recorded;
  for (size_t s = first + 1; s < last; ++s) recorded += extents[s].recorded;
  const Duration least = std::min(launches, recorded);
  if (least > ends) windows[first + 1].begin = windows[first + 1].begin - (least - ends);
}

}  // namespace

std::vector<StepWindow> StepWindows(std::span<const StepExtent> extents) {
  std::vector<StepWindow> windows(extents.size());
  Instant before;  // where the step before ended
  for (size_t s = 0; s < extents.size(); ++s) {
    const StepExtent& own = extents[s];
    if (!own.any) {
      windows[s] = {before, before};
      continue;
    }
    windows[s] =
        s > 0 ? WindowBehind(extents[s - 1], own, before) : StepWindow{own.first, own.last};
    before = own.last;
  }
  for (const auto& steps : Launched(extents)) GoByLaunches(extents, steps, windows);
  return windows;
}

void RecordPeriods(Graph& graph) {
  std::vector<Instant> start, end;
  for (const Task& t : graph.tasks()) {
    start.push_back(t.recorded_start);
    end.push_back(t.recorded_start + t.duration);
  }
  std::vector<StepExtent> extents = StepExtents(graph, start, end);
  for (StepExtent& e : extents) e.recorded = {};
  const std::vector<StepWindow> windows = StepWindows(extents);
  for (size_t s = 1; s < windows.size(); ++s) {
    graph.mutable_step(s).recorded_period = windows[s].length();
  }
}

}  // namespace daydream
