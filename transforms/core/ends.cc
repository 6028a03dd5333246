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

void TimeColumns::Set(TaskId t, std::span<const Duration> times) {
  const auto [row, added] = row_of_.try_emplace(t, times_.size() / ends_);
  if (added) {
    times_.insert(times_.end(), times.begin(), times.end());
  } else {
    std::ranges::copy(times, times_.begin() + static_cast<ptrdiff_t>(row->second * ends_));
  }
}

void TimeColumns::AddTasksTo(std::vector<TaskId>& tasks) const {
  for (const auto& [task, row] : row_of_) tasks.push_back(task);
}

std::vector<TaskId> EndColumns::tasks() const {
  std::vector<TaskId> tasks;
  durations.AddTasksTo(tasks);
  gaps.AddTasksTo(tasks);
  std::ranges::sort(tasks);
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  return tasks;
}

}  // namespace daydream
