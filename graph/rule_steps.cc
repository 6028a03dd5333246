// Rules I1 to I3: host work belongs to the step in which it starts, GPU work to the step in which
// its call starts. A stream runs its work in the order of its launches, so work whose call was not
// recorded lies between the steps of what was launched before and after it; what comes before all
// of that was launched before the recording, for a step that is not in it. Periods are those of
// graph/step_windows.h: the CPU's step marks say little while the CPU runs ahead.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/builder.h"
#include "graph/host_lead.h"
#include "graph/large_pages.h"
#include "graph/scopes.h"
#include "graph/step_windows.h"

namespace daydream {
namespace {

constexpr size_t kMostSteps = 60000;  // Task::step has 16 bits
constexpr Instant kNoEnd{std::numeric_limits<int64_t>::max()};
// Calls of a recording that are lost on the way, at most, for all that has none at the begin of a
// stream to be work from before the recording.
constexpr double kMostLost = 0.02;
// A call that waits returns 5 to 12 us after what it waited for (the medians of rule B2).
constexpr Duration kSameEnd = Duration::Us(15);
// Of reads that wait for their own copy it is up to 60 us (rule B7).
constexpr Duration kLatestReturn = Duration::Us(60);

// The only step of one of several ranks repeats as it does for ranks that are played together: all
// that was recorded, from the end of which the rank begins again. Not so where the GPU still did
// what was launched before: that is of an earlier step.
bool IsWholeRecordingOfARank(const Builder& b) {
  const std::vector<Rank>& ranks = b.trace.ranks;
  const std::vector<Step>& steps = b.report.steps.steps;
  if (ranks.size() != 1 || ranks[0].world_size <= 1 || steps.size() != 1) return false;
  const auto launched = [&](uint32_t op) { return b.ops[op].call.valid(); };
  return std::none_of(b.stream_ops.begin(), b.stream_ops.end(), [&](const auto& stream) {
    return !stream.empty() && !launched(stream[0]) && std::ranges::any_of(stream, launched);
  });
}

// Begins of the steps on the host, by Graph::steps(). Work before the first mark and after the last
// one gets steps of its own that are not counted, so that it does not stretch the real ones. Before
// a first step that is warm-up none is needed: nobody counts it.
std::vector<Instant> AddSteps(Builder& b) {
  const std::vector<Step>& steps = b.report.steps.steps;
  if (const size_t inside = b.report.steps.inside; inside > 0) {
    b.report.warnings.push_back(
        fmt::format("{} marks of steps lie inside of other marks and are left out: a step may hold "
                    "several iterations",
                    inside));
  }
  const bool window =
      b.report.steps.measured() == 0 || b.report.steps.method == StepMethod::kWindow;
  if (window || IsWholeRecordingOfARank(b)) {
    b.graph.AddStep({.label = steps.empty() ? "window" : steps.front().label});
    return {Instant::Min()};
  }
  std::vector<Instant> begins;
  if (steps.front().use == StepUse::kMeasured) {
    begins.push_back(Instant::Min());
    b.graph.AddStep({.label = std::string(kBeforeTheFirstStep), .measured = false});
  }
  for (const Step& step : steps) {
    if (begins.size() >= kMostSteps) {
      b.report.warnings.push_back(fmt::format("{} steps; those after the first {} are not counted",
                                              steps.size(), kMostSteps));
      begins.push_back(step.begin);
      b.graph.AddStep({.label = "(further steps)", .measured = false});
      return begins;
    }
    begins.push_back(begins.empty() ? Instant::Min() : step.begin);
    b.graph.AddStep({.label = step.label, .measured = step.use == StepUse::kMeasured});
  }
  begins.push_back(steps.back().end);
  b.graph.AddStep({.label = "(after the last step)", .measured = false});
  return begins;
}

// Of Graph::steps(): since when the recorder was off, where that is no step.
std::optional<Instant> OffSince(const Builder& b, size_t step) {
  const std::vector<Step>& found = b.report.steps.steps;
  const size_t before = b.graph.steps()[0].label == kBeforeTheFirstStep ? 1 : 0;
  if (step < before || step - before >= found.size()) return std::nullopt;
  const Step& s = found[step - before];
  return s.use == StepUse::kNotRecorded ? std::optional(s.begin) : std::nullopt;
}

uint16_t StepAt(const std::vector<Instant>& begins, Instant t) {
  auto it = std::upper_bound(begins.begin(), begins.end(), t);
  return static_cast<uint16_t>(std::max<ptrdiff_t>(it - begins.begin() - 1, 0));
}

// The step of every GPU operation, by index into Builder::ops.
class StepsOfOps {
 public:
  explicit StepsOfOps(const Builder& b)
      : b_(b), step_(b.ops.size()), first_(b.graph.steps().size(), Builder::kNone), last_(first_) {
    FindLaunched();
    if (launched_ == b.ops.size()) return;
    for (const std::vector<uint32_t>& stream : b.stream_ops) PlaceUnlaunched(stream);
  }

  uint16_t Of(uint32_t op) const { return step_[op]; }
  // The first operation of the step, and the first of those that end last; null: it has none.
  const GpuOp* First(size_t step) const { return OpOrNull(first_[step]); }
  const GpuOp* Last(size_t step) const { return OpOrNull(last_[step]); }

 private:
  const GpuOp* OpOrNull(uint32_t op) const { return op == Builder::kNone ? nullptr : &b_.ops[op]; }

  // Operations are in the order of their starts.
  void SetStep(uint32_t op, uint16_t step) {
    step_[op] = step;
    first_[step] = std::min(first_[step], op);
    const GpuOp* last = Last(step);
    const Instant end = b_.ops[op].end;
    if (last == nullptr || end > last->end || (end == last->end && op < last_[step])) {
      last_[step] = op;
    }
  }

  bool Launched(uint32_t op) const { return b_.ops[op].call.valid(); }

  // Launched operations, when those of each step begin on the GPU, and whether calls get lost: an
  // operation that follows a launched one on its stream was launched later, so its call was there
  // to be recorded.
  void FindLaunched() {
    const size_t steps = b_.graph.steps().size();
    gpu_begin_.assign(steps, kNoEnd);
    size_t lost = 0;
    std::vector<bool> any(b_.stream_ops.size());  // launched on this stream before
    for (uint32_t i = 0; i < b_.ops.size(); ++i) {
      const GpuOp& op = b_.ops[i];
      if (!op.call.valid()) {
        lost += any[op.lane.index()];
        continue;
      }
      any[op.lane.index()] = true;
      ++launched_;
      SetStep(i, b_.step_of_task[op.call.index()]);
      gpu_begin_[step_[i]] = std::min(gpu_begin_[step_[i]], op.start);
    }
    calls_get_lost_ = static_cast<double>(lost) > kMostLost * static_cast<double>(launched_);
    gpu_begin_[0] = Instant::Min();
    for (size_t s = 1; s < steps; ++s) {
      if (const auto off = OffSince(b_, s)) gpu_begin_[s] = std::min(gpu_begin_[s], *off);
    }
    // A step without any begins with the next one.
    for (size_t s = steps - 1; s-- > 1;) gpu_begin_[s] = std::min(gpu_begin_[s], gpu_begin_[s + 1]);
  }

  void PlaceUnlaunched(const std::vector<uint32_t>& stream) {
    const auto last = static_cast<uint16_t>(b_.graph.steps().size() - 1);
    // Steps of the launched operations around each one, from behind and from the front.
    std::vector<uint16_t> most(stream.size());
    uint16_t next = last;
    bool any = false;
    for (size_t i = stream.size(); i-- > 0;) {
      if (Launched(stream[i])) next = std::min(next, step_[stream[i]]), any = true;
      most[i] = next;
    }
    uint16_t least = 0;
    bool before = any && !calls_get_lost_;  // all that was launched is still to come
    for (size_t i = 0; i < stream.size(); ++i) {
      const uint32_t op = stream[i];
      if (Launched(op)) {
        least = std::max(least, step_[op]);
        before = false;
        continue;
      }
      const uint16_t by_time = StepAt(gpu_begin_, b_.ops[op].start);
      // Calls of two threads may cross: what the stream says last holds.
      SetStep(op, before ? uint16_t{0} : std::min(std::max(by_time, least), most[i]));
    }
  }

  const Builder& b_;
  std::vector<uint16_t> step_;
  std::vector<uint32_t> first_, last_;  // by step
  std::vector<Instant> gpu_begin_;      // by step
  size_t launched_ = 0;
  bool calls_get_lost_ = false;
};

// Where one step is counted, its host's time is part of the answer: time of the mark behind the
// last thing recorded in it becomes a task, as far as nothing else follows. A window without marks
// ends where its last record does, which says nothing of the host; and where waits were not
// recorded, that time may be one. Nor is it work when the mark ends with the GPU: no host work ends
// there by chance, a wait that was not recorded does.
void CloseLoneStep(Builder& b) {
  const Steps& found = b.report.steps;
  if (found.measured() != 1 || !found.lane.valid() || found.method == StepMethod::kWindow) return;
  if (b.trace.provenance.no_waits) return;
  const auto step = std::find_if(found.steps.begin(), found.steps.end(),
                                 [](const Step& s) { return s.use == StepUse::kMeasured; });
  const TaskId last = b.graph.lane(found.lane).last;
  if (!last.valid() || b.Start(last) < step->begin || step->end <= b.End(last)) return;
  Instant gpu_end = Instant::Min();
  for (const GpuOp& op : b.ops) gpu_end = std::max(gpu_end, op.end);
  if (std::abs((step->end - gpu_end).ns) <= kSameEnd.ns) return;
  ScopeId scope;  // that time is in no operator
  for (ScopeId s : ScopesAround(b.graph, b.graph.task(last).scope)) {
    if (ScopeAt(b.graph, s).kind == EventKind::kOp) continue;
    scope = s;
    break;
  }
  b.Append({.kind = TaskKind::kHost,
            .name = b.graph.AddName(step->label),
            .lane = found.lane,
            .scope = scope,
            .duration = step->end - b.End(last)},
           b.End(last), step->end);
  b.step_of_task.push_back(b.step_of_task[last.index()]);
  b.graph.mutable_task(last).gap = {};
}

// Whether a thread that waits went on when the work that ended at `done` had.
bool WaitedUntil(const Builder& b, Instant done) {
  return std::ranges::any_of(b.threads, [&](const HostThread& thread) {
    const auto next =
        std::ranges::partition_point(thread.tasks, [&](TaskId t) { return b.Start(t) < done; });
    if (next == thread.tasks.begin()) return false;
    TaskId running = *std::prev(next);
    for (TaskId t = running; t.valid() && b.Start(t) < done; t = b.next_on_lane[t.index()]) {
      running = t;
    }
    // Tasks that steps were closed with wait for nothing; those of a plan are not known to.
    const bool waits = running.index() < b.waits.size() && b.waits[running.index()];
    return waits && b.End(running) >= done && b.End(running) - done <= kLatestReturn;
  });
}

// What each step begins with, whether that was launched when the step before was done, and whether
// what lies before a window that was recorded ends with work from before that.
void FindBegins(Builder& b, const StepsOfOps& of_ops) {
  const size_t steps = b.graph.steps().size();
  for (size_t s = 0; s < steps; ++s) {
    const GpuOp* first = of_ops.First(s);
    if (first == nullptr) continue;
    GraphStep& step = b.graph.mutable_step(s);
    step.begin = {first->call, first->task};
    step.backlog = (s == 0 || OffSince(b, s).has_value()) && !of_ops.Last(s)->call.valid();
  }
  for (size_t s = 1; s < steps; ++s) {
    const GpuOp *first = of_ops.First(s), *before = of_ops.Last(s - 1);
    if (first == nullptr || before == nullptr || !first->call.valid()) continue;
    GraphStep& step = b.graph.mutable_step(s);
    step.host_led = first->call_start > before->end;
    step.host_waited = step.host_led && WaitedUntil(b, before->end);
  }
}

bool OnStream(const Builder& b, size_t task) {
  return b.graph.lane(b.graph.tasks()[task].lane).lane.kind == LaneKind::kStream;
}

// Host work: all before the operations of streams, and some of what was put between the rest.
void AssignHostSteps(Builder& b, const std::vector<Instant>& begins) {
  uint16_t step = 0;
  Instant begin = Instant::Min(), end = Instant::Min();  // of that step
  const auto assign = [&](size_t task) {
    if (const Instant start = b.task_start[task]; start < begin || start >= end) {
      step = StepAt(begins, start);
      begin = begins[step];
      end = step + size_t{1} < begins.size() ? begins[step + size_t{1}] : kNoEnd;
    }
    b.step_of_task[task] = step;
  };
  const auto [first_op, behind_ops] = b.TasksOfOps();
  for (size_t task = 0; task < first_op; ++task) assign(task);
  for (size_t task = behind_ops; task < b.graph.size(); ++task) {
    if (!OnStream(b, task)) assign(task);
  }
}

// What threads spent while the recorder was off is of no step that was recorded.
void CutThreadsAtHoles(Builder& b, const std::vector<Instant>& begins) {
  for (size_t hole = 0; hole + 1 < begins.size(); ++hole) {
    if (!OffSince(b, hole).has_value()) continue;
    const Instant from = begins[hole];
    for (const HostThread& thread : b.threads) {
      const auto next =
          std::ranges::partition_point(thread.tasks, [&](TaskId t) { return b.Start(t) < from; });
      if (next == thread.tasks.begin()) continue;
      TaskId last = *std::prev(next);
      for (TaskId t = b.next_on_lane[last.index()]; t.valid() && b.Start(t) < from;) {
        last = std::exchange(t, b.next_on_lane[t.index()]);
      }
      Task& before = b.graph.mutable_task(last);
      const Instant ends = b.End(last), end = ends + before.gap;
      if (end <= from) continue;
      const bool works = before.kind == TaskKind::kHost && ends > from;
      const Instant begin = works ? from : std::max(from, ends);
      const Task off{.duration = end - begin,
                     .name = b.graph.AddName("(not recorded)"),
                     .lane = thread.lane,
                     .kind = TaskKind::kHost};
      if (works) before.duration = from - b.Start(last);
      before.gap = works ? Duration{} : begin - ends;
      b.InsertAfter(last, off, begin, end);
      b.step_of_task.push_back(static_cast<uint16_t>(hole));
    }
  }
}

// Nor is the time from the last operation to what was launched before the recorder went on.
void CutStreamsAtHoles(Builder& b) {
  const std::vector<Step>& steps = b.report.steps.steps;
  if (std::ranges::find(steps, StepUse::kNotRecorded, &Step::use) == steps.end()) return;
  for (const std::vector<uint32_t>& stream : b.stream_ops) {
    for (size_t i = 1; i < stream.size(); ++i) {
      const GpuOp &before = b.ops[stream[i - 1]], &op = b.ops[stream[i]];
      const uint16_t hole = b.step_of_task[op.task.index()];
      Task& last = b.graph.mutable_task(before.task);
      if (last.gap <= Duration{} || b.step_of_task[before.task.index()] == hole) continue;
      if (!OffSince(b, hole).has_value()) continue;
      const Task off{.duration = std::exchange(last.gap, {}),
                     .name = b.graph.AddName("(not recorded)"),
                     .lane = before.lane,
                     .kind = TaskKind::kDelay};
      b.InsertAfter(before.task, off, before.end, before.end + off.duration);
      b.step_of_task.push_back(hole);
    }
  }
}

void AssignStreamSteps(Builder& b, const StepsOfOps& of_ops) {
  const auto [first_op, behind_ops] = b.TasksOfOps();
  for (size_t task = first_op; task < behind_ops; ++task) {
    b.step_of_task[task] = of_ops.Of(static_cast<uint32_t>(task - first_op));
  }
  // Delays belong to the operation they delay: those that follow one another, from the first on.
  for (size_t task = behind_ops; task < b.graph.size(); ++task) {
    const TaskId before = b.graph.tasks()[task].lane_prev;
    if (!OnStream(b, task) || (before.valid() && b.OpOf(before) == Builder::kNone)) continue;
    TaskId op(task);
    while (op.valid() && b.OpOf(op) == Builder::kNone) op = b.next_on_lane[op.index()];
    if (!op.valid()) continue;
    for (TaskId t(task); t != op; t = b.next_on_lane[t.index()]) {
      b.step_of_task[t.index()] = b.step_of_task[op.index()];
    }
  }
  CutStreamsAtHoles(b);
  // What was launched before the recording is of step 0: one that is not counted, but where all
  // of the window is one step.
  for (size_t lane = 0; lane < b.backlog.size(); ++lane) {
    TaskId t = b.graph.lane(LaneId(lane)).first;
    for (size_t i = 0; i < b.backlog[lane]; ++i, t = b.next_on_lane[t.index()]) {
      b.step_of_task[t.index()] = 0;
    }
  }
}

// The calls of StepMarks::launches(): those of a thread are in the order of TaskId, and so are the
// steps in which they start. One pass over edges instead of LaunchCalls, which sort them by call.
StepMarks::Launches LastLaunches(const Builder& b) {
  std::vector<TaskId> first_calls;  // of each thread that has any
  for (const HostThread& thread : b.threads) {
    if (thread.first_call < thread.end_call) first_calls.push_back(b.calls[thread.first_call].task);
  }
  absl::flat_hash_map<std::pair<uint16_t, size_t>, StepMarks::Launch> last;  // by step and thread
  for (const Edge& e : b.graph.edges()) {
    if (e.rule != Rule::kLaunch) continue;
    const auto behind = std::ranges::upper_bound(first_calls, e.from);
    const auto thread = static_cast<size_t>(behind - first_calls.begin());
    StepMarks::Launch& of = last[{b.step_of_task[e.from.index()], thread}];
    const bool later = !of.task.valid() || of.task < e.from;
    if (later || (of.task == e.from && of.lag < e.lag)) of = {e.from, e.lag, e.from_anchor};
  }
  StepMarks::Launches by_step(b.graph.steps().size());
  for (const auto& [key, launch] : last) by_step[key.first].push_back(launch);
  return by_step;
}

}  // namespace

void AssignSteps(Builder& b) {
  ReserveLarge(b.step_of_task, b.graph.size() + 1);
  b.step_of_task.resize(b.graph.size(), 0);
  const std::vector<Instant> begins = AddSteps(b);
  AssignHostSteps(b, begins);
  CutThreadsAtHoles(b, begins);
  CloseLoneStep(b);
  const StepsOfOps of_ops(b);
  AssignStreamSteps(b, of_ops);
  FindBegins(b, of_ops);
}

void RecordPeriods(Builder& b, TasksOfSteps tasks) {
  size_t n = b.graph.steps().size();
  std::optional<StepMarks::Launches> launches;  // a plan says itself what launches what
  if (n > 1 && !b.trace.provenance.planned) launches = LastLaunches(b);
  const std::vector<StepExtent> extents =
      StepExtents(b.graph, std::move(tasks), launches.has_value() ? &*launches : nullptr,
                  b.task_start, b.task_end);
  StepWindow window = extents.front().all;
  for (const StepExtent& e : extents) {
    window = {std::min(window.begin, e.all.begin), std::max(window.end, e.all.end)};
  }
  b.report.window = window.length();
  if (n == 1) {
    b.graph.mutable_step(0).recorded_period = b.report.window;
    return;
  }
  const std::vector<StepWindow> windows = StepWindows(extents);
  for (size_t i = 1; i < n; ++i) {
    GraphStep& step = b.graph.mutable_step(i);
    step.recorded_period = windows[i].length();
    const std::optional<StepWindow>& host = extents[i].host;
    if (!host.has_value() || !extents[i - 1].gpu) continue;
    const bool ahead = host->begin < extents[i - 1].last;
    const Duration least = step.recorded_period + step.recorded_period / kPartsThatDiffer;
    if (ahead && host->length() > least) step.recorded_host = host->length();
  }
}

}  // namespace daydream
