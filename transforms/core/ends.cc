#include "transforms/core/ends.h"

#include <algorithm>

namespace daydream {

void EndColumns::Begin(size_t i, const Params& params) {
  current_ = i;
  given_ = params;
  given_.NoteIn(nullptr);  // what is read at ends of others is not asked for
  params_.clear();
  for (const End& end : ends_) params_.push_back(end.application == i ? &end.params : &given_);
}

std::span<Duration> TimeColumns::Make(TaskId t, Duration now) {
  if (!Has(t)) {
    if (t.index() >= row_of_.size()) row_of_.resize(t.index() + 1, kNone);
    row_of_[t.index()] = static_cast<uint32_t>(times_.size() / ends_);
    times_.resize(times_.size() + ends_, now);
  }
  return std::span(times_).subspan(size_t{row_of_[t.index()]} * ends_, ends_);
}

void TimeColumns::Set(TaskId t, std::span<const Duration> times) {
  std::ranges::copy(times, Make(t, {}).begin());
}

void TimeColumns::AddTasksTo(std::vector<TaskId>& tasks) const {
  for (size_t i = 0; i < row_of_.size(); ++i) {
    if (row_of_[i] != kNone) tasks.push_back(TaskId(i));
  }
}

std::vector<TaskId> EndColumns::tasks() const {
  std::vector<TaskId> tasks;
  durations.AddTasksTo(tasks);
  const auto of_durations = static_cast<std::ptrdiff_t>(tasks.size());
  gaps.AddTasksTo(tasks);
  std::inplace_merge(tasks.begin(), tasks.begin() + of_durations, tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  return tasks;
}

}  // namespace daydream
