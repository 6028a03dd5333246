#include "graph/step_windows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace daydream {
namespace {

constexpr Instant kEarly{std::numeric_limits<int64_t>::min()};
constexpr Instant kLate{std::numeric_limits<int64_t>::max()};
constexpr Duration kLeast{std::numeric_limits<int64_t>::min()};

}  // namespace

std::vector<StepMarks::By> StepMarks::FindBy(const Graph& graph) {
  std::vector<By> by(graph.steps().size(), By::kAll);
  for (const Task& task : graph.tasks()) {
    if (task.step < by.size()) by[task.step] = std::max(by[task.step], ByOf(graph, task));
  }
  return by;
}

std::optional<size_t> StepMarks::LoneOf(const Graph& graph) {
  std::optional<size_t> lone;
  for (size_t s = 0; s < graph.steps().size(); ++s) {
    if (!graph.steps()[s].measured) continue;
    if (lone.has_value() || s == 0) return std::nullopt;
    lone = s;
  }
  return lone;
}

StepMarks::StepMarks(const Graph& graph)
    : StepMarks(graph, FindBy(graph), [&](TaskId t) { return graph.task(t).step; }) {}

StepMarks::StepMarks(const Graph& graph, std::vector<By> by, StepOf step_of)
    : graph_(graph), by_(std::move(by)), lone_(LoneOf(graph)) {
  FindWaits();
  FindLaunches(step_of);
}

void StepMarks::FindWaits() {
  if (!lone_.has_value()) return;
  for (const Edge& e : graph_.edges()) {
    const Task &from = graph_.task(e.from), &to = graph_.task(e.to);
    const bool waits = e.rule == Rule::kHostWait && to.step == lone_ && from.step < to.step;
    if (waits && IsGpu(from.kind)) waits_.push_back({e.to, e.lag});
  }
}

void StepMarks::FindLaunches(StepOf step_of) {
  const std::span<const GraphStep> steps = graph_.steps();
  const auto counts = [&](size_t s) { return steps[s].measured && HasGpu(s); };
  size_t first = 1, last = by_.size();
  while (first < by_.size() && !counts(first)) ++first;
  while (last > first && !counts(last - 1)) --last;
  const bool lone = last == first + 1 && first == lone_;
  // One counts, or no launch is known before it.
  if (!lone && (last < first + 2 || !HasGpu(first - 1) || steps[first - 1].backlog)) return;
  launches_.resize(last);
  std::vector<bool> launches(graph_.size(), false);
  for (const Edge& e : graph_.edges()) {
    if (e.rule == Rule::kLaunch) launches[e.from.index()] = true;
  }
  absl::flat_hash_map<TaskId, std::pair<size_t, size_t>> place_of;  // in launches_
  for (const GraphLane& lane : graph_.lanes()) {
    size_t next = last;  // steps from here on have theirs of this lane: it is their last
    for (TaskId t = lane.last; t.valid() && next >= first; t = graph_.task(t).lane_prev) {
      const size_t step = step_of(t);
      if (step + 1 < first) break;
      if (!launches[t.index()] || step >= next) continue;
      next = step;
      place_of[t] = {step, launches_[step].size()};
      launches_[step].push_back({t, kLeast});
    }
  }
  launches.assign(graph_.size(), false);
  for (const auto& [t, place] : place_of) launches[t.index()] = true;
  for (const Edge& e : graph_.edges()) {
    if (e.rule != Rule::kLaunch || !launches[e.from.index()]) continue;
    const auto [step, lane] = place_of.at(e.from);
    Launch& of = launches_[step][lane];
    if (of.lag < e.lag) of = {e.from, e.lag, e.from_anchor};
  }
}

bool StepMarks::FirstsMatter() const {
  for (size_t s = 1; s < by_.size(); ++s) {
    if (!HasGpu(s - 1) || graph_.steps()[s - 1].backlog) return true;
  }
  return by_.size() <= 1;
}

bool StepMarks::Begins(const Task& task) const {
  if (by_[task.step] == By::kMarkedGpu && !graph_.lane(task.lane).marks_steps) return false;
  return Ends(task);
}

namespace {

// Marks by task, and whether that of task i is as the one before: found out faster than the mark.
struct MarksOfGraph {
  const Graph& graph;
  StepMark operator()(size_t i) const { return StepMarkOf(graph, graph.tasks()[i]); }
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

}  // namespace

template <class MarkOf>
std::vector<StepExtent> ExtentsBy(const Graph& graph, const MarkOf& mark_of,
                                  std::span<const Instant> start, std::span<const Instant> end) {
  using By = StepMarks::By;
  struct Found {
    By by = By::kAll;
    std::array<Instant, 3> first = {kLate, kLate, kLate}, last = {kEarly, kEarly, kEarly};
    std::optional<StepWindow> host;
    bool any = false;
  };
  const size_t steps = graph.steps().size();
  const std::optional<size_t> lone = StepMarks::LoneOf(graph);
  std::vector<Found> found(steps);
  const auto note = [&](const StepMark& mark, Instant first, Instant last) {
    if (mark.step >= steps) return;
    Found& of = found[mark.step];
    of.any = true;
    of.by = std::max(of.by, By{mark.by});
    of.first[mark.by] = std::min(of.first[mark.by], first);
    of.last[mark.by] = std::max(of.last[mark.by], last);
    if (mark.step != lone || !mark.host) return;
    if (!of.host.has_value()) of.host = {first, last};
    of.host->begin = std::min(of.host->begin, first);
    of.host->end = std::max(of.host->end, last);
  };
  // Neighbours are mostly of one step and kind: what they have in common is noted once.
  for (size_t i = 0; i < graph.size();) {
    const StepMark mark = mark_of(i);
    Instant first = start[i], last = end[i];
    for (++i; i < graph.size() && mark_of.AsBefore(i); ++i) {
      first = std::min(first, start[i]);
      last = std::max(last, end[i]);
    }
    note(mark, first, last);
  }
  for (Found& of : found) {  // what counts as more counts as less, too
    for (size_t k = of.first.size() - 1; k-- > 0;) {
      of.first[k] = std::min(of.first[k], of.first[k + 1]);
      of.last[k] = std::max(of.last[k], of.last[k + 1]);
    }
  }
  std::vector<By> by;
  by.reserve(found.size());
  for (const Found& of : found) by.push_back(of.by);
  const StepMarks marks(graph, std::move(by), [&](TaskId t) { return mark_of(t.index()).step; });
  std::vector<StepExtent> extents(steps);
  for (size_t s = 0; s < steps; ++s) {
    const Found& of = found[s];
    const By last = std::min(of.by, By::kGpu);  // GPU work of any lane can end a step
    extents[s] = {.gpu = marks.HasGpu(s),
                  .any = of.any,
                  .counts = graph.steps()[s].measured,
                  .backlog = graph.steps()[s].backlog,
                  .host_led = graph.steps()[s].host_led,
                  .recorded = graph.steps()[s].recorded_period,
                  .first = of.first[static_cast<size_t>(of.by)],
                  .last = of.last[static_cast<size_t>(last)],
                  .host = of.host};
    for (const StepMarks::Launch& l : marks.launches(s)) {
      const std::span<const Instant> at = l.from == Anchor::kEnd ? end : start;
      const Instant arrives = at[l.task.index()] + l.lag;
      extents[s].launched = std::max(extents[s].launched.value_or(kEarly), arrives);
    }
  }
  BeginBehindWaits(marks, start, extents);
  return extents;
}

std::vector<StepExtent> StepExtents(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end) {
  return ExtentsBy(graph, MarksOfGraph{graph}, start, end);
}

std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const Instant> start,
                                    std::span<const Instant> end) {
  return StepWindows(StepExtents(graph, start, end));
}

std::vector<StepWindow> StepWindows(const Graph& graph, std::span<const StepMark> marks,
                                    std::span<const Instant> start, std::span<const Instant> end) {
  return StepWindows(StepExtents(graph, marks, start, end));
}

std::vector<StepExtent> StepExtents(const Graph& graph, std::span<const StepMark> marks,
                                    std::span<const Instant> start, std::span<const Instant> end) {
  return ExtentsBy(graph, GivenMarks{marks}, start, end);
}

namespace {

// From the end of the GPU work of the step before to the first of its own.
std::optional<Duration> LeadIn(std::span<const StepExtent> extents, size_t s) {
  if (s >= extents.size() || !extents[s].gpu || !extents[s - 1].gpu) return std::nullopt;
  return extents[s].first - extents[s - 1].last;
}

// By step: what those behind it that count have, their mean; or the one that follows it has.
std::vector<std::optional<Duration>> LeadInsOfOthers(std::span<const StepExtent> extents) {
  std::vector<std::optional<Duration>> found(extents.size());
  Duration sum;
  int64_t others = 0;
  for (size_t s = extents.size(); s-- > 1;) {
    found[s] = others > 0 ? sum / others : LeadIn(extents, s + 1);
    const std::optional<Duration> own = LeadIn(extents, s);
    if (!own.has_value() || !extents[s].counts) continue;
    sum += *own;
    ++others;
  }
  return found;
}

// Of a step with GPU work before which none is known that an edit may be asked of.
bool BeginsAsOthers(const StepExtent& previous, const StepExtent& own) {
  return own.gpu && (!previous.gpu || previous.backlog);
}

// The larger of what its host and its GPU take.
StepWindow LoneWindow(const StepExtent& own) {
  // A wait that ends before what it waits for, as damaged clocks have it, arrives behind the host.
  const StepWindow gpu = {own.first, own.last};
  const StepWindow host = {std::min(own.host->begin, own.host->end), own.host->end};
  return own.gpu && gpu.length() > host.length() ? gpu : host;
}

// Of the lone step with GPU work before it.
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

// The counted steps that launches are known of, and the one before them: [first, last).
std::optional<std::pair<size_t, size_t>> Launched(std::span<const StepExtent> extents) {
  size_t first = 0, last = extents.size();
  while (first < last && !extents[first].launched.has_value()) ++first;
  while (last > first && !extents[last - 1].launched.has_value()) --last;
  if (last < first + 2 || (first > 0 && extents[first].counts)) return std::nullopt;
  if (extents[last - 1].host.has_value()) return std::nullopt;  // the lone step
  for (size_t s = first; s < last; ++s) {
    if (!extents[s].launched.has_value()) return std::nullopt;  // an edit took all of a step
  }
  return std::pair(first, last);
}

// Where the launches of steps are further apart than their ends. Of steps the first of which found
// a GPU with work, a host that lost some of its lead launches slower than a GPU ends: there the
// steps are no longer than they were recorded.
void GoByLaunches(std::span<const StepExtent> extents, std::span<StepWindow> windows) {
  const auto steps = Launched(extents);
  if (!steps.has_value()) return;
  const auto [first, last] = *steps;
  const StepExtent &before = extents[first], &end = extents[last - 1];
  const Duration ends = end.last - before.last, launches = *end.launched - *before.launched;
  if (extents[first + 1].host_led) {
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
  std::vector<std::optional<Duration>> leads;  // found when first asked for
  const auto lead_of_others = [&](size_t s) {
    if (leads.empty()) leads = LeadInsOfOthers(extents);
    return leads[s];
  };
  Instant before;  // where the step before ended
  for (size_t s = 0; s < extents.size(); ++s) {
    const StepExtent& own = extents[s];
    if (!own.any) {
      windows[s] = {before, before};
      continue;
    }
    if (s == 0) {
      windows[s] = {own.first, own.last};
    } else if (BeginsAsOthers(extents[s - 1], own) && lead_of_others(s).has_value()) {
      windows[s] = {std::min(own.first - *lead_of_others(s), own.last), own.last};
    } else {
      windows[s] = WindowBehind(extents[s - 1], own, before);
    }
    before = own.last;
  }
  GoByLaunches(extents, windows);
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
