#include "simulator/step_batch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "graph/step_windows.h"
#include "simulator/large_pages.h"
#include "simulator/program.h"
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

  StepExtent ExtentOf(size_t step, size_t scenario) const {
    const Candidates& c = candidates.of_step[step];
    StepExtent extent{.gpu = candidates.has_gpu(step),
                      .any = !c.first.empty(),
                      .first = Instant::AtNs(std::numeric_limits<int64_t>::max()),
                      .last = Instant::AtNs(std::numeric_limits<int64_t>::min())};
    for (TaskId t : c.first) {
      extent.first.ns = std::min(extent.first.ns, start[t.index() * kWidth + scenario]);
    }
    for (TaskId t : c.last) {
      extent.last.ns = std::max(extent.last.ns, end[t.index() * kWidth + scenario]);
    }
    for (size_t i = 0; i < c.host_first.size(); ++i) {
      const StepWindow lane = {{start[c.host_first[i].index() * kWidth + scenario]},
                               {end[c.host_last[i].index() * kWidth + scenario]}};
      if (i == 0) extent.host = lane;
      extent.host->begin = std::min(extent.host->begin, lane.begin);
      extent.host->end = std::max(extent.host->end, lane.end);
    }
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
  Program program;
  std::unique_ptr<int64_t[]> start, end;
  std::array<std::vector<Duration>, kWidth> duration, gap;
  std::vector<StepExtent> extents;
  std::vector<Duration> periods;
};

StepBatch::StepBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StepBatch::StepBatch(StepBatch&&) noexcept = default;
StepBatch& StepBatch::operator=(StepBatch&&) noexcept = default;
StepBatch::~StepBatch() = default;

absl::StatusOr<StepBatch> StepBatch::Make(const Graph& graph) {
  auto impl = std::make_unique<Impl>(graph);
  std::vector<TaskId> watched;
  for (const Candidates& c : impl->candidates.of_step) {
    watched.insert(watched.end(), c.first.begin(), c.first.end());
    watched.insert(watched.end(), c.host_first.begin(), c.host_first.end());
  }
  DD_ASSIGN_OR_RETURN(impl->program, Program::Compile(graph, watched));
  impl->start = LargeArray((graph.size() + 1) * kWidth);
  impl->end = LargeArray((graph.size() + 1) * kWidth);
  for (size_t s = 0; s < kWidth; ++s) {
    std::vector<Duration>&duration = impl->duration[s], &gap = impl->gap[s];
    ReserveLarge(duration, graph.size());
    ReserveLarge(gap, graph.size());
    if (s > 0) {
      duration = impl->duration[0];
      gap = impl->gap[0];
      continue;
    }
    duration.resize(graph.size());
    gap.resize(graph.size());
    for (size_t i = 0; i < graph.size(); ++i) {
      duration[i] = graph.tasks()[i].duration;
      gap[i] = graph.tasks()[i].gap;
    }
  }
  return StepBatch(std::move(impl));
}

std::span<Duration> StepBatch::duration(size_t s) { return impl_->duration[s]; }
std::span<Duration> StepBatch::gap(size_t s) { return impl_->gap[s]; }

std::array<Duration, StepBatch::kWidth> StepBatch::Run() {
  static_assert(kWidth == kSideBySide);
  std::array<const Duration*, kWidth> durations, gaps;
  for (size_t s = 0; s < kWidth; ++s) {
    durations[s] = impl_->duration[s].data();
    gaps[s] = impl_->gap[s].data();
  }
  EvaluateEight(impl_->program, durations, gaps, impl_->start.get(), impl_->end.get());
  std::array<Duration, kWidth> steps;
  for (size_t s = 0; s < kWidth; ++s) steps[s] = impl_->StepOf(s);
  return steps;
}

}  // namespace daydream
