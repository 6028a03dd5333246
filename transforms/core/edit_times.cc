// What tasks take, in the graph that is edited and at the ends of open parameters.
#include <span>

#include "absl/functional/function_ref.h"
#include "base/check.h"
#include "transforms/core/editor.h"

namespace daydream {
namespace {

// `now`: what all ends have that have no column yet.
void ScaleColumn(TimeColumns& columns, TaskId t, Duration now, double factor,
                 std::span<const double> at_ends) {
  if (at_ends.empty() && !columns.Has(t)) return;
  const std::span<Duration> times = columns.Make(t, now);
  for (size_t e = 0; e < times.size(); ++e) {
    if (times[e] > Duration{}) times[e] = times[e].Scaled(at_ends.empty() ? factor : at_ends[e]);
  }
}

}  // namespace

void Editor::Scale(std::span<const TaskId> tasks, double factor, std::span<const double> at_ends) {
  DD_CHECK(factor >= 0);
  if (tasks.empty()) return;
  if (notes_ == EditNotes::kKept && tasks.size() > edits_.size()) {
    edits_.reserve(edits_.size() + tasks.size());
  }
  if (!at_ends.empty()) ends_->durations.Reserve(tasks.size());
  for (TaskId t : tasks) {
    const Task& task = graph_.task(t);
    const Duration after = task.duration.Scaled(factor), change = after - task.duration;
    if (ends_ != nullptr) ScaleColumn(ends_->durations, t, task.duration, factor, at_ends);
    Touch(t, change, {});
    graph_.SetDuration(t, after);
  }
  changes_.scaled += tasks.size();
}

void Editor::ScaleGaps(std::span<const TaskId> tasks, double factor,
                       std::span<const double> at_ends) {
  if (!at_ends.empty()) ends_->gaps.Reserve(tasks.size());
  for (TaskId t : tasks) {
    const Duration gap = graph_.task(t).gap;
    const bool any = gap > Duration{};
    if (ends_ != nullptr && (any || ends_->gaps.Has(t))) {
      ScaleColumn(ends_->gaps, t, gap, factor, at_ends);
    }
    if (!any || factor == 1) continue;
    const Duration after = gap.Scaled(factor);
    Touch(t, {}, after - gap);
    graph_.SetGap(t, after);
    ++changes_.set;
  }
}

void Editor::SetDuration(TaskId t, Duration d) {
  DD_CHECK(d >= Duration{});
  Touch(t, d - graph_.task(t).duration, {});
  graph_.SetDuration(t, d);
  ForgetEnds(t);
  ++changes_.set;
}

void Editor::SetAtEnds(TaskId t, std::span<const Duration> times) {
  if (!times.empty()) ends_->durations.Set(t, times);
}

void Editor::SetGapAtEnds(TaskId t, std::span<const Duration> gaps) {
  if (!gaps.empty()) ends_->gaps.Set(t, gaps);
}

void Editor::NeedEditsWhereOthers(absl::FunctionRef<bool(const Task&)> decides) {
  NeedEditsWhere([decides](const Task& t, Duration duration, Duration gap) {
    return gap != t.gap || (duration != t.duration && decides(t));
  });
}

void Editor::NeedEditsWhere(absl::FunctionRef<bool(const Task&, Duration, Duration)> others) {
  if (ends_ == nullptr) return;
  for (TaskId t : ends_->tasks()) {
    const Task& task = graph_.task(t);
    if (task.removed) continue;
    const std::span<const Duration> durations = ends_->durations.Of(t), gaps = ends_->gaps.Of(t);
    for (size_t e = 0; e < ends_->size(); ++e) {
      if (ends_->needs_edits(e)) continue;
      const Duration duration = durations.empty() ? task.duration : durations[e];
      if (others(task, duration, gaps.empty() ? task.gap : gaps[e])) ends_->NeedEdits(e);
    }
  }
}

void Editor::AddLongerAtEnds(TaskId t, bool with_gap, std::span<Duration> sums) const {
  if (ends_ == nullptr) return;
  const bool longer = ends_->durations.Has(t), apart = with_gap && ends_->gaps.Has(t);
  const Task& task = graph_.task(t);
  if (task.removed || (!longer && !apart)) return;
  for (size_t e = 0; e < sums.size(); ++e) {
    if (longer) sums[e] += ends_->durations.Of(e, t, task.duration) - task.duration;
    if (apart) sums[e] += ends_->gaps.Of(e, t, task.gap) - task.gap;
  }
}

void Editor::SetGap(TaskId t, Duration gap) {
  Touch(t, {}, gap - graph_.task(t).gap);
  graph_.SetGap(t, gap);
  if (ends_ != nullptr) ends_->gaps.Forget(t);
  ++changes_.set;
}

}  // namespace daydream
