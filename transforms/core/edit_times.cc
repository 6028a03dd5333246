// What tasks take, in the graph that is edited and at the ends of open parameters.
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "base/check.h"
#include "transforms/core/editor.h"

namespace daydream {
namespace {

// Of some tasks, where they have columns or ends have factors of their own.
class ScaleColumns {
 public:
  ScaleColumns(TimeColumns* columns, size_t tasks, double factor, std::span<const double> at_ends)
      : columns_(columns), factor_(factor) {
    if (at_ends.empty()) return;
    by_ = columns->Add(at_ends);
    columns->Reserve(tasks);
  }
  // `now`: what all ends have that have no column yet.
  void Of(TaskId t, Duration now) {
    if (by_.has_value()) {
      columns_->Scale(t, now, *by_);
    } else if (columns_ != nullptr) {
      columns_->Scale(t, factor_);
    }
  }

 private:
  TimeColumns* const columns_;  // null: nobody asks
  const double factor_;
  std::optional<TimeColumns::Factors> by_;
};

}  // namespace

void Editor::Scale(std::span<const TaskId> tasks, double factor, std::span<const double> at_ends) {
  DD_CHECK(factor >= 0);
  if (tasks.empty()) return;
  if (notes_ == EditNotes::kKept && tasks.size() > edits_.size()) {
    edits_.reserve(edits_.size() + tasks.size());
  }
  ScaleColumns columns(ends_ != nullptr ? &ends_->durations : nullptr, tasks.size(), factor,
                       at_ends);
  for (TaskId t : tasks) {
    const Task& task = graph_.task(t);
    const Duration after = task.duration.Scaled(factor), change = after - task.duration;
    columns.Of(t, task.duration);
    Touch(t, change, {});
    graph_.SetDuration(t, after);
  }
  changes_.scaled += tasks.size();
}

void Editor::ScaleGaps(std::span<const TaskId> tasks, double factor,
                       std::span<const double> at_ends) {
  ScaleColumns columns(ends_ != nullptr ? &ends_->gaps : nullptr, tasks.size(), factor, at_ends);
  for (TaskId t : tasks) {
    const Duration gap = graph_.task(t).gap;
    const bool any = gap > Duration{};
    if (any || (ends_ != nullptr && ends_->gaps.Has(t))) columns.Of(t, gap);
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
  std::vector<size_t> asked;  // ends
  for (size_t e = 0; e < ends_->size(); ++e) {
    if (!ends_->needs_edits(e)) asked.push_back(e);
  }
  for (TaskId t : ends_->tasks()) {
    const Task& task = graph_.task(t);
    if (task.removed) continue;
    std::erase_if(asked, [&](size_t e) {
      const Duration duration = ends_->durations.Of(e, t, task.duration);
      const Duration gap = ends_->gaps.Of(e, t, task.gap);
      const bool same = duration == task.duration && gap == task.gap;
      if (same || !others(task, duration, gap)) return false;
      ends_->NeedEdits(e);
      return true;
    });
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
