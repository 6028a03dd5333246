#include "simulator/step_batch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "graph/step_windows.h"
#include "simulator/contract.h"
#include "simulator/large_pages.h"
#include "simulator/simulate.h"

namespace daydream {
namespace {

// The tasks that can be the first to start or the last to end in their step. On a lane, starts only
// grow from task to task, but after a negative gap; ends likewise, but before a task that
// overlaps. So a few tasks a step and lane are enough.
struct Candidates {
  std::vector<TaskId> first, last;
  std::vector<TaskId> host_first, host_last;  // of the lone step, a lane each
};

class CandidateFinder {
 public:
  explicit CandidateFinder(const Graph& g) : g_(g), marks_(g) {
    one_ = g.steps().size() <= 1;
    of_step.resize(std::max<size_t>(g.steps().size(), 1));
    for (const GraphLane& lane : g.lanes()) {
      Walk(lane.first, true);
      Walk(lane.last, false);
      if (marks_.lone().has_value() && !one_) FindHost(lane, *marks_.lone());
    }
  }

  std::span<const TaskId> launches(size_t step) const {
    return one_ ? std::span<const TaskId>() : marks_.launches(step);
  }
  std::span<const StepMarks::Wait> waits(size_t step) const {
    return step == marks_.lone() && !one_ ? marks_.waits() : std::span<const StepMarks::Wait>();
  }
  bool has_gpu(size_t step) const { return !one_ && marks_.HasGpu(step); }
  std::vector<Candidates> of_step;

 private:
  void FindHost(const GraphLane& lane, size_t step) {
    auto mine = [&](TaskId t) { return g_.task(t).step == step && IsHost(g_.task(t).kind); };
    TaskId first = lane.first, last = lane.last;
    while (first.valid() && !mine(first)) first = g_.task(first).lane_next;
    while (last.valid() && !mine(last)) last = g_.task(last).lane_prev;
    if (!first.valid()) return;
    of_step[step].host_first.push_back(first);
    of_step[step].host_last.push_back(last);
  }

  // The step whose begin or end `t` can be, or none.
  size_t StepOf(const Task& t, bool begin) const {
    if (one_) return 0;
    if (t.step >= of_step.size()) return SIZE_MAX;
    return (begin ? marks_.Begins(t) : marks_.Ends(t)) ? t.step : SIZE_MAX;
  }

  void Walk(TaskId t, bool forward) {
    ++walk_;
    seen_.resize(of_step.size());
    for (; t.valid(); t = forward ? g_.task(t).lane_next : g_.task(t).lane_prev) {
      const Task& task = g_.task(t);
      // Backwards: what comes later on the lane need not end later.
      if (!forward && task.gap < Duration{}) ++walk_;
      if (const size_t s = StepOf(task, forward); s != SIZE_MAX && seen_[s] != walk_) {
        seen_[s] = walk_;
        (forward ? of_step[s].first : of_step[s].last).push_back(t);
      }
      if (forward ? task.gap < Duration{} : task.overlaps) ++walk_;
    }
  }

  const Graph& g_;
  StepMarks marks_;
  bool one_;
  std::vector<uint64_t> seen_;  // by step: the walk that has a candidate
  uint64_t walk_ = 0;
};

}  // namespace

struct StepBatch::Impl {
  explicit Impl(const Graph& g) : graph(g), candidates(g) {}

  size_t CellOf(TaskId t, size_t scenario) const {
    return size_t{contracted.row_of[t.index()]} * kWidth + scenario;
  }

  StepExtent ExtentOf(size_t step, size_t scenario) const {
    const Candidates& c = candidates.of_step[step];
    StepExtent extent{.gpu = candidates.has_gpu(step),
                      .any = !c.first.empty(),
                      .first = Instant::AtNs(std::numeric_limits<int64_t>::max()),
                      .last = Instant::AtNs(std::numeric_limits<int64_t>::min())};
    for (TaskId t : c.first) {
      extent.first.ns = std::min(extent.first.ns, start[CellOf(t, scenario)]);
    }
    for (TaskId t : c.last) {
      extent.last.ns = std::max(extent.last.ns, end[CellOf(t, scenario)]);
    }
    for (size_t i = 0; i < c.host_first.size(); ++i) {
      const StepWindow lane = {{start[CellOf(c.host_first[i], scenario)]},
                               {end[CellOf(c.host_last[i], scenario)]}};
      if (i == 0) extent.host = lane;
      extent.host->begin = std::min(extent.host->begin, lane.begin);
      extent.host->end = std::max(extent.host->end, lane.end);
    }
    for (TaskId t : candidates.launches(step)) {
      const Instant launch = Instant::AtNs(start[CellOf(t, scenario)]);
      extent.launched = std::max(extent.launched.value_or(launch), launch);
    }
    if (candidates.waits(step).empty() || !extent.host.has_value()) return extent;
    int64_t arrives = std::numeric_limits<int64_t>::max();
    for (const StepMarks::Wait& wait : candidates.waits(step)) {
      const int64_t start_ns = start[CellOf(wait.task, scenario)];
      arrives = std::min(arrives, start_ns - wait.lag.ns);
    }
    extent.host->begin.ns = std::max(extent.host->begin.ns, arrives);
    return extent;
  }

  Duration StepOf(size_t scenario) {
    const size_t steps = candidates.of_step.size();
    extents.clear();
    for (size_t s = 0; s < steps; ++s) extents.push_back(ExtentOf(s, scenario));
    if (steps == 1) return extents[0].any ? extents[0].last - extents[0].first : Duration{};
    const std::vector<StepWindow> windows = StepWindows(extents);
    periods.clear();
    for (size_t s = 1; s < steps; ++s) periods.push_back(windows[s].length());
    return StepTimeOf(graph.steps(), periods);
  }

  const Graph& graph;
  CandidateFinder candidates;
  Contracted contracted;
  std::unique_ptr<int64_t[]> sums, start, end;  // [place][scenario]
  std::vector<StepExtent> extents;
  std::vector<Duration> periods;
};

StepBatch::StepBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StepBatch::StepBatch(StepBatch&&) noexcept = default;
StepBatch& StepBatch::operator=(StepBatch&&) noexcept = default;
StepBatch::~StepBatch() = default;

absl::StatusOr<StepBatch> StepBatch::Make(const Graph& graph) {
  auto impl = std::make_unique<Impl>(graph);
  std::vector<TaskId> starts, ends;
  for (const Candidates& c : impl->candidates.of_step) {
    starts.insert(starts.end(), c.first.begin(), c.first.end());
    starts.insert(starts.end(), c.host_first.begin(), c.host_first.end());
    ends.insert(ends.end(), c.last.begin(), c.last.end());
    ends.insert(ends.end(), c.host_last.begin(), c.host_last.end());
  }
  for (size_t s = 0; s < impl->candidates.of_step.size(); ++s) {
    for (const StepMarks::Wait& wait : impl->candidates.waits(s)) starts.push_back(wait.task);
    for (TaskId t : impl->candidates.launches(s)) starts.push_back(t);
  }
  DD_ASSIGN_OR_RETURN(impl->contracted, Contract(graph, starts, ends));
  const size_t rows = impl->contracted.program.tasks;
  impl->sums = LargeArray(impl->contracted.sums.size() * kWidth);
  impl->start = LargeArray((rows + 1) * kWidth);
  impl->end = LargeArray((rows + 1) * kWidth);
  StepBatch batch(std::move(impl));
  batch.Reset();
  return batch;
}

void StepBatch::Reset() {
  int64_t* cell = impl_->sums.get();
  for (int64_t sum : impl_->contracted.sums) cell = std::fill_n(cell, kWidth, sum);
}

StepBatch::Sums StepBatch::sums(TaskId task) {
  const Contracted::Sums& at = impl_->contracted.sums_of[task.index()];
  int64_t* const sums = impl_->sums.get();
  return {sums + size_t{at.duration} * kWidth, sums + size_t{at.gap} * kWidth};
}

void StepBatch::Set(size_t s, TaskId task, Duration duration, Duration gap) {
  const Task& t = impl_->graph.task(task);
  const Sums at = sums(task);
  at.duration[s] += (duration - t.duration).ns;
  at.gap[s] += (gap - t.gap).ns;
}

std::array<Duration, StepBatch::kWidth> StepBatch::Run() {
  static_assert(kWidth == kSideBySide);
  EvaluateEight(impl_->contracted.program, impl_->sums.get(), impl_->start.get(), impl_->end.get());
  std::array<Duration, kWidth> steps;
  for (size_t s = 0; s < kWidth; ++s) steps[s] = impl_->StepOf(s);
  return steps;
}

}  // namespace daydream
