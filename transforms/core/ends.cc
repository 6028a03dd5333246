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
  if (Has(t)) {
    std::ranges::copy(times, times_.begin() + static_cast<ptrdiff_t>(row_of_[t.index()] * ends_));
    return;
  }
  if (t.index() >= row_of_.size()) row_of_.resize(t.index() + 1, kNone);
  row_of_[t.index()] = static_cast<uint32_t>(times_.size() / ends_);
  times_.insert(times_.end(), times.begin(), times.end());
}

void TimeColumns::AddTasksTo(std::vector<TaskId>& tasks) const {
  for (size_t i = 0; i < row_of_.size(); ++i) {
    if (row_of_[i] != kNone) tasks.push_back(TaskId(i));
  }
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
