#include "simulator/batch_step.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "graph/large_pages.h"
#include "simulator/lone_step.h"

namespace daydream {

BatchShape::BatchShape(const Graph& g, bool rounds)
    : graph(g),
      is_rounds(rounds),
      steps(g.steps().begin(), g.steps().end()),
      candidates(g, rounds),
      lead(HostLead::Of(g)) {}

void BatchShape::Keep(const Plan& plan) {
  std::vector<TaskId> starts, ends;
  for (const StepCandidates& c : candidates.of_step) {
    starts.insert(starts.end(), c.first.begin(), c.first.end());
    starts.insert(starts.end(), c.host_first.begin(), c.host_first.end());
    starts.insert(starts.end(), c.next_host_first.begin(), c.next_host_first.end());
    ends.insert(ends.end(), c.last.begin(), c.last.end());
    ends.insert(ends.end(), c.host_last.begin(), c.host_last.end());
    ends.insert(ends.end(), c.round_last.begin(), c.round_last.end());
  }
  for (size_t s = 0; s < candidates.of_step.size(); ++s) {
    for (const StepMarks::Wait& wait : candidates.waits(s)) starts.push_back(wait.task);
    for (const StepMarks::Launch& l : candidates.launches(s)) {
      (l.from == Anchor::kEnd ? ends : starts).push_back(l.task);
    }
  }
  if (lead.has_value() && !lead->one_step()) {
    starts.insert(starts.end(), lead->tasks().begin(), lead->tasks().end());
  }
  contracted = Contract(graph, plan.program(), starts, ends);
}

template <size_t kScenarios>
void BatchStep::FindReaches(const int64_t* instants, std::vector<ReachOfStep>& reaches) const {
  reaches.resize(shape_.candidates.of_step.size());
  const auto row = [&](TaskId t) {
    return instants + 2 * kScenarios * size_t{shape_.contracted.place_of[t.index()]};
  };
  for (size_t step = 0; step < reaches.size(); ++step) {
    auto& [first, last] = reaches[step];
    first.fill(std::numeric_limits<int64_t>::max());
    last.fill(std::numeric_limits<int64_t>::min());
    for (TaskId t : shape_.candidates.of_step[step].first) {
      const int64_t* const starts = row(t);
      for (size_t s = 0; s < kScenarios; ++s) first[s] = std::min(first[s], starts[s]);
    }
    for (TaskId t : shape_.candidates.of_step[step].last) {
      const int64_t* const ends = row(t) + kScenarios;
      for (size_t s = 0; s < kScenarios; ++s) last[s] = std::max(last[s], ends[s]);
    }
  }
}

void BatchStep::Read(const int64_t* instants, size_t scenarios) {
  if (scenarios == 1) return FindReaches<1>(instants, reaches_);
  FindReaches<kSideBySide>(instants, reaches_);
}

StepExtent BatchStep::ExtentOf(size_t step, InstantsOfRows at, const ReachOfStep& reach) const {
  const auto row = [&](TaskId t) { return Place(t, at); };
  const StepCandidates& c = shape_.candidates.of_step[step];
  static const GraphStep kOnly;
  const GraphStep& of_graph = shape_.graph.steps().empty() ? kOnly : shape_.graph.steps()[step];
  StepExtent extent{.gpu = shape_.candidates.has_gpu(step),
                    .any = !c.last.empty(),
                    .counts = of_graph.measured,
                    .backlog = of_graph.backlog,
                    .host_led = of_graph.host_led,
                    .host_waited = of_graph.host_waited,
                    .recorded = of_graph.recorded_period,
                    .first = Instant::AtNs(reach.first[at.scenario]),
                    .last = Instant::AtNs(reach.last[at.scenario])};
  if (c.first.empty()) extent.first = extent.last;  // no window depends on it
  for (size_t i = 0; i < c.host_first.size(); ++i) {
    const StepWindow lane = {{at.start[row(c.host_first[i])]}, {at.end[row(c.host_last[i])]}};
    if (i == 0) extent.host = lane;
    extent.host->begin = std::min(extent.host->begin, lane.begin);
    extent.host->end = std::max(extent.host->end, lane.end);
  }
  if (!c.next_host_first.empty() && extent.host.has_value()) {
    int64_t next = std::numeric_limits<int64_t>::max();
    for (TaskId t : c.next_host_first) next = std::min(next, at.start[row(t)]);
    extent.host->end.ns = std::max(next, extent.host->begin.ns);
  }
  for (const StepMarks::Launch& l : shape_.candidates.launches(step)) {
    const int64_t* of_call = l.from == Anchor::kEnd ? at.end : at.start;
    const Instant arrives = Instant::AtNs(of_call[row(l.task)]) + l.lag;
    extent.launched = std::max(extent.launched.value_or(arrives), arrives);
  }
  if (shape_.candidates.waits(step).empty() || !extent.host.has_value()) return extent;
  int64_t arrives = std::numeric_limits<int64_t>::max();
  for (const StepMarks::Wait& wait : shape_.candidates.waits(step)) {
    const int64_t start_ns = at.start[row(wait.task)];
    arrives = std::min(arrives, start_ns - wait.lag.ns);
  }
  extent.host->begin.ns = std::max(extent.host->begin.ns, arrives);
  extent.host_led = false;
  return extent;
}

// By the windows alone.
void BatchStep::FindPeriods(InstantsOfRows at, std::span<const ReachOfStep> reaches) {
  const size_t steps = shape_.candidates.of_step.size();
  extents_.clear();
  periods_.clear();
  for (size_t s = 0; s < steps; ++s) extents_.push_back(ExtentOf(s, at, reaches[s]));
  if (steps == 1) {
    periods_.push_back(extents_[0].any ? extents_[0].last - extents_[0].first : Duration{});
    return;
  }
  windows_ = StepWindows(extents_);
  for (size_t s = 1; s < steps; ++s) periods_.push_back(windows_[s].length());
}

Duration BatchStep::CycleIn(InstantsOfRows at) const {
  std::vector<std::optional<Instant>> host_ends(windows_.size());
  for (size_t s = 0; s < windows_.size(); ++s) {
    for (TaskId t : shape_.candidates.of_step[s].round_last) {
      const Instant end_of_lane = {at.end[Place(t, at)]};
      host_ends[s] = std::max(host_ends[s].value_or(end_of_lane), end_of_lane);
    }
  }
  return CycleOf(windows_, host_ends);
}

// What the host takes in the scenario with these sums.
Duration BatchStep::HostPeriodOf(WriteSums sums) {
  if (gpu_sums_.empty()) {
    for (size_t i = 0; i < shape_.graph.size(); ++i) {
      if (!OnStream(shape_.graph, TaskId(i))) continue;
      const Contracted::Sums& at = shape_.contracted.sums_of[i];
      gpu_sums_.insert(gpu_sums_.end(), {at.duration, at.gap});
    }
    instants_of_host_ = MakeLargeArray(2 * shape_.contracted.program.tasks);
  }
  host_sums_.resize(shape_.contracted.sums.size());
  sums(host_sums_);
  for (uint32_t at : gpu_sums_) host_sums_[at] = 0;
  EvaluateOne(shape_.contracted.program, host_sums_.data(), instants_of_host_.get());
  FindReaches<1>(instants_of_host_.get(), reaches_of_host_);
  FindPeriods({instants_of_host_.get(), 0, 1}, reaches_of_host_);
  return shape_.lead->HostPeriod(extents_, StepTimeOf(shape_.steps, periods_));
}

Duration BatchStep::Of(InstantsOfRows at, Duration cycle, WriteSums sums) {
  FindPeriods(at, reaches_);
  if (shape_.candidates.of_step.size() == 1) return periods_.front();
  if (shape_.is_rounds) return CycleIn(at);
  AddWhatIsUsedUp(at, sums);
  if (shape_.cycle_of.has_value()) periods_[*shape_.cycle_of - 1] = cycle;
  return StepTimeOf(shape_.graph.steps(), periods_);
}

void BatchStep::AddWhatIsUsedUp(InstantsOfRows at, WriteSums sums) {
  if (!shape_.lead.has_value()) return;
  HostLead::Starts starts;
  for (size_t i = 0; i < starts.size() && !shape_.lead->one_step(); ++i) {
    const TaskId t = shape_.lead->tasks()[i];
    starts[i] = Instant::AtNs(at.start[Place(t, at)]);
  }
  const Duration step = StepTimeOf(shape_.steps, periods_);
  const Duration used_up = shape_.lead->UsedUp(starts, extents_, step);
  if (used_up <= Duration{}) return;
  std::vector<Duration> longer = periods_;
  std::vector<StepWindow> windows = windows_;  // those of the host alone come in their place
  AddUsedUp(
      shape_.steps, used_up, [&] { return HostPeriodOf(sums); }, longer);
  periods_ = std::move(longer);
  windows_ = std::move(windows);
}

}  // namespace daydream
