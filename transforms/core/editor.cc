#include "transforms/core/editor.h"

#include <algorithm>

#include "base/check.h"
#include "graph/call_kind.h"
#include "graph/device_waits.h"
#include "graph/facts.h"
#include "graph/queue.h"

namespace daydream {
namespace {

constexpr uint32_t kNoEdge = 0xffffffff;

}  // namespace

Editor::AtFirst Editor::Look(const Graph& graph) {
  AtFirst found;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    found.calls_gone |=
        task.removed && (task.kind == TaskKind::kCall || task.kind == TaskKind::kWait);
    if (task.kind != TaskKind::kDelay || task.removed || task.detail >= graph.size()) continue;
    TaskId holder(task.detail);
    found.contended.push_back({TaskId(i), holder, task.duration, graph.task(holder).duration});
  }
  return found;
}

Editor::Editor(Graph& graph, EndColumns* ends, EditNotes notes)
    : graph_(graph),
      ends_(ends),
      notes_(notes),
      at_first_(FactOf<AtFirst>(graph, [&] { return Look(graph); })),
      recorded_tasks_(graph.size()) {
  if (ends != nullptr) ends_at_first_ = *ends;
}

CauseId Editor::BeginCause(std::string_view what) {
  if (!keeps_notes()) return cause_ = 0;
  for (size_t i = 0; i < causes_.size(); ++i) {
    if (causes_[i].what == what) return cause_ = static_cast<CauseId>(i);
  }
  DD_CHECK(causes_.size() < kNoCause);
  causes_.push_back({.what = std::string(what)});
  return cause_ = static_cast<CauseId>(causes_.size() - 1);
}

CauseId Editor::CauseOf(TaskId t) const {
  if (told_ < edits_.size()) cause_of_.resize(graph_.size(), kNoCause);
  for (; told_ < edits_.size(); ++told_) {
    cause_of_[edits_[told_].task.index()] = edits_[told_].cause;
  }
  return t.index() < cause_of_.size() ? cause_of_[t.index()] : kNoCause;
}

CauseId Editor::OpenCause() { return cause_ == kNoCause ? BeginCause("edited") : cause_; }

void Editor::Note(TaskId t, Duration duration, Duration gap) {
  OpenCause();
  const bool every = notes_ == EditNotes::kKept || edits_.empty();
  if (!every && graph_.task(edits_.back().task).step == graph_.task(t).step) return;
  edits_.push_back({.task = t, .cause = cause_, .duration = duration, .gap = gap});
  LaneKind kind = graph_.lane(graph_.task(t).lane).lane.kind;
  Cause& cause = causes_[cause_];
  // Work of modelled lanes (loader workers) belongs to neither side.
  if (kind == LaneKind::kStream) cause.gpu += duration + gap;
  if (kind == LaneKind::kThread) cause.host += duration + gap;
}

void Editor::TouchEdge(const Edge& e) {
  if (!keeps_notes()) return;
  edge_edits_.push_back({.from = e.from, .to = e.to, .rule = e.rule, .cause = OpenCause()});
}

void Editor::MarkPositionsOn(LaneId lane) {
  if (moved_positions_.size() < graph_.lanes().size()) {
    moved_positions_.resize(graph_.lanes().size(), false);
  }
  moved_positions_[lane.index()] = true;
}

std::vector<TaskId> Editor::Select(const std::function<bool(const Graph&, TaskId)>& wanted) const {
  std::vector<TaskId> selected;
  for (size_t i = 0; i < graph_.size(); ++i) {
    TaskId t(i);
    if (!graph_.task(t).removed && wanted(graph_, t)) selected.push_back(t);
  }
  return selected;
}

void Editor::SetEarliest(TaskId t, Instant earliest) { graph_.mutable_task(t).earliest = earliest; }

void Editor::SetPriority(TaskId t, int32_t priority) { graph_.mutable_task(t).priority = priority; }

void Editor::SetStep(TaskId t, uint16_t step) { graph_.mutable_task(t).step = step; }

void Editor::Rename(TaskId t, std::string_view name) {
  graph_.mutable_task(t).name = graph_.AddName(name);
}

void Editor::SetCopy(TaskId t, const CopyDetail& copy) {
  graph_.mutable_task(t).detail = graph_.AddCopyDetail(copy);
}

void Editor::SetKernel(TaskId t, const KernelDetail& kernel) {
  graph_.mutable_task(t).detail = graph_.AddKernelDetail(kernel);
}

void Editor::SetHolder(TaskId delay, TaskId holder) {
  graph_.mutable_task(delay).detail = holder.value;
}

void Editor::Remove(std::span<const TaskId> tasks) {
  for (TaskId t : tasks) {
    if (graph_.task(t).removed) continue;
    Task& task = graph_.mutable_task(t);
    Touch(t, -task.duration, -task.gap);
    task.duration = task.gap = {};
    task.removed = true;
    ForgetEnds(t);
    MarkPositions(t);
    ++changes_.removed;
  }
}

// Tasks that begin or end with something of another lane, and do so when they take no time.
std::vector<bool> Editor::FindMet(const Graph& graph) {
  std::vector<bool> met(graph.size(), false);
  for (const Edge& e : graph.edges()) {
    if (e.rule != Rule::kHostWait && e.rule != Rule::kQueue) met[e.to.index()] = true;
  }
  return met;
}

void Editor::RemoveButGap(std::span<const TaskId> tasks) {
  if (met_ == nullptr) met_ = FactOf<std::vector<bool>>(graph_, [&] { return FindMet(graph_); });
  const auto meets = [&](TaskId t) { return t.index() < met_->size() && (*met_)[t.index()]; };
  TaskId last, left;  // the task of `tasks` before, and what is left before that
  for (TaskId t : tasks) {
    if (graph_.task(t).removed) continue;
    TaskId before = t;
    do {
      before = meets(before) ? TaskId::None() : graph_.task(before).lane_prev;
    } while (before.valid() && before != last && graph_.task(before).removed);
    if (before.valid() && graph_.task(before).removed) before = left;
    if (before.valid() || graph_.task(t).gap == Duration{}) {
      if (before.valid()) MoveGap(t, before);
      Remove({&t, 1});
    } else {
      SetDuration(t, {});
    }
    last = t, left = before;
  }
}

void Editor::MoveGap(TaskId from, TaskId behind) {
  const Duration more = graph_.task(from).gap, was = graph_.task(behind).gap;
  std::vector<Duration> at_ends;
  if (ends_ != nullptr && (ends_->gaps.Has(from) || ends_->gaps.Has(behind))) {
    at_ends = AtEnds([&](const EndView& at) {
      return ends_->gaps.Of(at.end, from, more) + ends_->gaps.Of(at.end, behind, was);
    });
  }
  if (more != Duration{}) SetGap(behind, was + more);
  if (at_ends != std::vector(at_ends.size(), was + more)) SetGapAtEnds(behind, at_ends);
}

void Editor::Merge(std::span<const TaskId> tasks) {
  Remove(tasks);
  for (TaskId t : tasks) graph_.mutable_task(t).merged = true;
}

TaskId Editor::InsertAfter(TaskId after, Task task) {
  TaskId t = graph_.InsertAfter(after, task);
  Touch(t, task.duration, task.gap);
  MarkPositions(t);
  ++changes_.inserted;
  return t;
}

TaskId Editor::InsertBefore(TaskId before, Task task) {
  TaskId t = graph_.InsertBefore(before, task);
  Touch(t, task.duration, task.gap);
  MarkPositions(t);
  ++changes_.inserted;
  return t;
}

TaskId Editor::Append(Task task) {
  TaskId t = graph_.Append(task);
  Touch(t, task.duration, task.gap);
  MarkPositions(t);
  ++changes_.inserted;
  return t;
}

void Editor::AddEdge(TaskId from, TaskId to, Duration lag, Rule rule, Anchor from_anchor,
                     Anchor to_anchor) {
  graph_.AddEdge({.from = from,
                  .to = to,
                  .lag = lag,
                  .rule = rule,
                  .from_anchor = from_anchor,
                  .to_anchor = to_anchor});
  TouchEdge(graph_.edges().back());
  ++changes_.edges;
  if (rule != Rule::kLaunch) return;
  calls_known_ = false;
  if (launches_known_) {
    launches_.edge.resize(graph_.size(), kNoEdge);
    launches_.edge[to.index()] = static_cast<uint32_t>(graph_.edges().size() - 1);
  }
}

void Editor::SetLag(size_t edge, Duration lag) {
  Edge& e = graph_.mutable_edges()[edge];
  if (e.lag == lag) return;
  e.lag = lag;
  TouchEdge(e);
  ++changes_.edges;
}

size_t Editor::DropEdges(const std::function<bool(const Graph&, const Edge&)>& unwanted) {
  size_t dropped = std::erase_if(graph_.mutable_edges(), [&](const Edge& e) {
    if (!unwanted(graph_, e)) return false;
    TouchEdge(e);
    return true;
  });
  changes_.edges += dropped;
  if (dropped > 0) launches_known_ = calls_known_ = false;
  return dropped;
}

TaskId Editor::Fuse(std::span<const TaskId> tasks, std::string_view name, Duration duration) {
  DD_CHECK(!tasks.empty());
  TaskId first = tasks.front();
  Task& task = graph_.mutable_task(first);
  Touch(first, duration - task.duration, {});
  task.duration = duration;
  ForgetEnds(first);
  task.name = graph_.AddName(name);
  changes_.fused += tasks.size();
  size_t removed = changes_.removed;
  RemoveWithLaunches(tasks.subspan(1));
  for (TaskId t : tasks.subspan(1)) graph_.mutable_task(t).merged = true;
  changes_.removed = removed;
  return first;
}

size_t Editor::RemoveWithLaunches(std::span<const TaskId> gpu_tasks) {
  if (gpu_tasks.empty()) return 0;
  std::vector<TaskId> calls, rest;
  if (!launches_known_) IndexLaunches();
  for (TaskId t : gpu_tasks) {
    if (TaskId call = LaunchOf(t); call.valid()) {
      calls.push_back(call);
      Edge& launch = graph_.mutable_edges()[launches_.edge[t.index()]];
      if (launch.lag > Duration{}) TouchEdge(launch);
      launch.lag = std::min(launch.lag, Duration{});
    }
    for (TaskId d = graph_.task(t).lane_prev; d.valid() && graph_.task(d).kind == TaskKind::kDelay;
         d = graph_.task(d).lane_prev) {
      rest.push_back(d);
    }
  }
  Remove(gpu_tasks);
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  std::erase_if(calls, [&](TaskId call) {
    auto launched = LaunchedBy(call);
    return graph_.task(call).removed ||
           std::any_of(launched.begin(), launched.end(),
                       [&](TaskId t) { return !graph_.task(t).removed; });
  });
  Remove(calls);
  for (TaskId call : calls) {
    if (TaskId wait = OwnWait(graph_, call); wait.valid()) rest.push_back(wait);
  }
  uint64_t removed = changes_.removed;
  Remove(rest);
  changes_.removed = removed;  // parts of what was asked for
  return calls.size();
}

void Editor::Finish() {
  FollowHolders();
  if (graph_.structure() != 0 && !at_first_->calls_gone) return;  // only times changed
  const auto gone = [&](TaskId t) {
    const Task& task = graph_.task(t);
    return task.removed && (task.kind == TaskKind::kCall || task.kind == TaskKind::kWait);
  };
  for (const PassedEdge& passed : EdgesPassedOn(graph_, gone)) {
    graph_.AddEdge(passed.edge);
    cause_ = CauseOf(passed.by);
    TouchEdge(passed.edge);
  }
  std::erase_if(graph_.mutable_edges(), [&](const Edge& e) {
    if ((e.rule != Rule::kHostWait && e.rule != Rule::kQueue) || !gone(e.to)) return false;
    cause_ = CauseOf(e.to);
    TouchEdge(e);
    return true;
  });
  launches_known_ = calls_known_ = false;
  RebuildQueueEdges(graph_, moved_positions_);
  moved_positions_.clear();
}

LaneId Editor::NewLane(std::string_view name, LaneKind kind, LaneOrder order) {
  // It has a name, but no number that a recorded lane could have.
  return graph_.AddLane(
      {.lane = {.kind = kind, .name = graph_.AddName(name), .number = -1}, .order = order});
}

LaneId Editor::NewStream(std::string_view name, LaneId like) {
  const GraphLane near = graph_.lane(like);
  const LaneId made = NewLane(name, LaneKind::kStream);
  GraphLane& lane = graph_.mutable_lane(made);
  lane.lane.device = near.lane.device;
  lane.lane.rank = near.lane.rank;
  lane.queue_depth = near.queue_depth;
  return made;
}

void Editor::Move(TaskId t, LaneId lane, TaskId after) {
  MarkPositions(t);
  graph_.MoveToLane(t, lane, after);
  MarkPositions(t);
  Touch(t, {}, {});
  if (keeps_notes()) edits_.back().moved = true;
  ++changes_.moved;
}

void Editor::Relaunch(TaskId gpu_task, TaskId call) {
  if (!launches_known_) IndexLaunches();
  uint32_t edge = launches_.edge[gpu_task.index()];
  DD_CHECK(edge != kNoEdge);
  Edge& e = graph_.mutable_edges()[edge];
  if (e.from == call) return;
  TouchEdge(e);
  e.from = call;
  e.from_anchor = Anchor::kEnd;
  TouchEdge(e);
  if (auto it = launches_.started.find(gpu_task); it != launches_.started.end()) {
    Edge& started = graph_.mutable_edges()[it->second];
    if (started.from != call) TouchEdge(started);
    started.from = call;
    TouchEdge(started);
  }
  calls_known_ = false;
  MarkPositions(gpu_task);
  ++changes_.edges;
}

void Editor::AllowReorder(LaneId lane) {
  graph_.mutable_lane(lane).order = LaneOrder::kPriority;
  ++changes_.edges;
}

// The edge that says which call launched a task. A task that may start while its call still returns
// has a second one from the call's start, and delays share the launch of what they delay.
bool Editor::IsLaunch(const Edge& e) const {
  return e.rule == Rule::kLaunch && e.from_anchor == Anchor::kEnd &&
         graph_.task(e.to).kind != TaskKind::kDelay;
}

// As FollowHolders() finds it there.
std::vector<Duration> Editor::WaitAtEnds(const Contended& c) const {
  if (ends_ == nullptr || !(ends_->durations.Has(c.delay) || ends_->durations.Has(c.holder)))
    return {};
  return AtEnds([&](const EndView& at) {
    const Duration wait = ends_at_first_->durations.Of(at.end, c.delay, c.wait);
    const Duration held = ends_at_first_->durations.Of(at.end, c.holder, c.held);
    const Duration delay = at.DurationOf(c.delay), holder = at.DurationOf(c.holder);
    if (delay != wait || holder == held || held == Duration{}) return delay;
    return wait.Scaled(holder.seconds() / held.seconds());
  });
}

// A task that waited for processors held by another one waits in proportion (rule G6).
void Editor::FollowHolders() {
  for (const Contended& c : at_first_->contended) {
    const Task& delay = graph_.task(c.delay);
    const Task& holder = graph_.task(c.holder);
    SetAtEnds(c.delay, WaitAtEnds(c));
    if (delay.duration != c.wait || holder.duration == c.held || c.held == Duration{}) continue;
    Duration wait = c.wait.Scaled(holder.duration.seconds() / c.held.seconds());
    // Where there is one cause it is that: no table of tasks is made for it.
    const CauseId held_by = causes_.size() == 1 ? CauseId{0} : CauseOf(c.holder);
    if (held_by != kNoCause) cause_ = held_by;
    Touch(c.delay, wait - delay.duration, {});
    graph_.SetDuration(c.delay, wait);
  }
}

void Editor::IndexLaunches() const {
  launches_ = *FactOf<Launches>(graph_, [&] { return FindLaunchEdges(graph_); });
  launches_known_ = true;
}

void Editor::IndexCalls() const {
  if (!launches_known_) IndexLaunches();
  launched_ = FactOf<Launched>(graph_, [&] { return FindLaunched(graph_, launches_); });
  calls_known_ = true;
}

TaskId Editor::LaunchOf(TaskId gpu_task) const {
  if (!launches_known_) IndexLaunches();
  if (gpu_task.index() >= launches_.edge.size()) return TaskId::None();
  uint32_t edge = launches_.edge[gpu_task.index()];
  return edge == kNoEdge ? TaskId::None() : graph_.edges()[edge].from;
}

}  // namespace daydream
