#include "transforms/core/ends.h"

#include <algorithm>
#include <bit>

namespace daydream {

void EndColumns::Begin(size_t i, const Params& params) {
  current_ = i;
  given_ = params;
  given_.NoteIn(nullptr);  // what is read at ends of others is not asked for
  params_.clear();
  for (const End& end : ends_) params_.push_back(end.application == i ? &end.params : &given_);
}

TimeColumns::Row& TimeColumns::RowOf(TaskId t) {
  if (t.index() >= row_of_.size()) row_of_.resize(t.index() + 1, kNone);
  uint32_t& at = row_of_[t.index()];
  if (at == kNone) {
    at = static_cast<uint32_t>(rows_.size());
    rows_.push_back({});
  }
  return rows_[at];
}

std::span<Duration> TimeColumns::WriteOut(Row& row) {
  if (row.scaled) {
    const std::vector<double>& by = factors_[row.at].by;
    row.at = times_.size(), row.scaled = false;
    for (size_t end = 0; end < ends_; ++end) times_.push_back(row.from.Scaled(by[end]));
  }
  return std::span(times_).subspan(row.at, ends_);
}

void TimeColumns::Set(TaskId t, std::span<const Duration> times) {
  const bool fresh = !Has(t);
  Row& row = RowOf(t);
  if (fresh || row.scaled) {
    row = {.from = {}, .at = times_.size()};
    times_.insert(times_.end(), times.begin(), times.end());
  } else {
    std::ranges::copy(times, WriteOut(row).begin());
  }
}

namespace {

// Doubles hold whole numbers up to this, and half as many with this one added: what is added up is
// then the nearest whole number, half to even, as Duration::FromDouble() rounds.
constexpr double kWhole = 0x1.8p52;
constexpr double kMostInDoubles = 0x1p50;

}  // namespace

TimeColumns::Factors TimeColumns::Add(std::span<const double> factors) {
  FactorsOfEnds& of = factors_.emplace_back();
  of.by.assign(factors.begin(), factors.end());
  of.by.resize((ends_ + kTogether - 1) / kTogether * kTogether, 1);
  const double most = *std::ranges::max_element(of.by);
  of.longest = Duration::FromDouble(kMostInDoubles / std::max(most, 1.0));
  return static_cast<Factors>(factors_.size() - 1);
}

void TimeColumns::Scale(TaskId t, Duration now, Factors by) {
  if (!Has(t)) {
    if (now > Duration{}) RowOf(t) = {.from = now, .at = by, .scaled = true};
    return;
  }
  const std::span<Duration> times = WriteOut(RowOf(t));
  for (size_t end = 0; end < ends_; ++end) {
    if (times[end] > Duration{}) times[end] = times[end].Scaled(factors_[by].by[end]);
  }
}

void TimeColumns::Scale(TaskId t, double factor) {
  if (!Has(t)) return;
  for (Duration& time : WriteOut(RowOf(t))) {
    if (time > Duration{}) time = time.Scaled(factor);
  }
}

std::vector<double> TimeColumns::About(std::span<const TaskId> tasks) const {
  std::vector<double> about(ends_), scaled(factors_.size());
  for (TaskId t : tasks) {
    if (!Has(t)) continue;
    const Row& row = rows_[row_of_[t.index()]];
    if (row.scaled) scaled[row.at] += static_cast<double>(row.from.ns);
    for (size_t end = 0; end < ends_ && !row.scaled; ++end) {
      about[end] += static_cast<double>(times_[row.at + end].ns);
    }
  }
  for (size_t i = 0; i < scaled.size(); ++i) {
    for (size_t end = 0; end < ends_; ++end) about[end] += scaled[i] * factors_[i].by[end];
  }
  return about;
}

void TimeColumns::ReadEight(TaskId t, size_t first, Eight& times) const {
  const Row& row = rows_[row_of_[t.index()]];
#ifndef __FP_FAST_FMA  // there the product is not rounded before it is added to
  if (row.scaled && row.from <= factors_[row.at].longest) {
    const double from = static_cast<double>(row.from.ns);
    const double* by = factors_[row.at].by.data() + first;
    for (size_t i = 0; i < kTogether; ++i) {
      const double time = from * by[i];
      times[i] = std::bit_cast<int64_t>(time + kWhole) - std::bit_cast<int64_t>(kWhole);
    }
    return;
  }
#endif
  const size_t count = std::min(kTogether, ends_ - first);
  for (size_t i = 0; i < count; ++i) times[i] = Of(first + i, t, {}).ns;
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
