// What tasks take at the ends of open parameters, beside what they take in the graph that is being
// edited: columns of durations, so that an end which changes times only needs no graph of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "transforms/core/params.h"

namespace daydream {

// Times by end, for some tasks; the others take the same at all ends.
class TimeColumns {
 public:
  explicit TimeColumns(size_t ends) : ends_(ends) {}
  bool Has(TaskId t) const { return t.index() < row_of_.size() && row_of_[t.index()] != kNone; }
  // By end; empty where it takes at all what it takes in the graph.
  std::span<const Duration> Of(TaskId t) const {
    if (!Has(t)) return {};
    return std::span(times_).subspan(size_t{row_of_[t.index()]} * ends_, ends_);
  }
  // `now`: what it is in the graph.
  Duration Of(size_t end, TaskId t, Duration now) const {
    const std::span<const Duration> times = Of(t);
    return times.empty() ? now : times[end];
  }
  void Set(TaskId t, std::span<const Duration> times);
  // To be changed in place; `now`, where it took the same at all ends until then.
  std::span<Duration> Make(TaskId t, Duration now);
  void Forget(TaskId t) {
    if (Has(t)) row_of_[t.index()] = kNone;
  }
  void Reserve(size_t tasks) { times_.reserve(times_.size() + tasks * ends_); }
  void AddTasksTo(std::vector<TaskId>& tasks) const;  // in order
  bool any() const { return !row_of_.empty(); }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  size_t ends_;
  std::vector<uint32_t> row_of_;  // by task, as far as any has a row
  std::vector<Duration> times_;   // [row][end]
};

class EndColumns {
 public:
  // One end: a parameter of one application of a list has another value, all others are as given.
  struct End {
    size_t application;
    Params params;  // of that application
  };
  explicit EndColumns(std::vector<End> ends)
      : durations(ends.size()),
        gaps(ends.size()),
        ends_(std::move(ends)),
        needs_edits_(ends_.size(), false) {}

  size_t size() const { return ends_.size(); }
  // Application `i` of the list comes next, with `params` at the ends of others.
  void Begin(size_t i, const Params& params);
  const Params& params(size_t end) const { return *params_[end]; }
  // The end is of an application that comes later: until then all is as it is in the graph.
  bool IsLater(size_t end) const { return ends_[end].application > current_; }

  // The graph has other edits there: its columns tell nothing.
  void NeedEdits(size_t end) { needs_edits_[end] = true; }
  bool needs_edits(size_t end) const { return needs_edits_[end]; }
  std::vector<TaskId> tasks() const;  // that take other times or gaps at some end, in order

  TimeColumns durations, gaps;

 private:
  std::vector<End> ends_;
  size_t current_ = 0;  // the application that is next
  Params given_;        // of the application that is next
  std::vector<const Params*> params_;
  std::vector<bool> needs_edits_;
};

// An end, as what is to be known there for finding a time.
struct EndView {
  const Graph& graph;
  const EndColumns& columns;
  size_t end;

  const Params& params() const { return columns.params(end); }
  Duration DurationOf(TaskId t) const {
    return columns.durations.Of(end, t, graph.task(t).duration);
  }
};

}  // namespace daydream
