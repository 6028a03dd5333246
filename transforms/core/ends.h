// What tasks take at the ends of open parameters, beside what they take in the graph that is being
// edited: columns of durations, so that an end which changes times only needs no graph of its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "transforms/core/params.h"

namespace daydream {

// Times by end, for some tasks; the others take the same at all ends. What was scaled is kept as
// what it was and by which factors, and takes no memory for each end.
class TimeColumns {
 public:
  static constexpr size_t kTogether = 8;
  using Eight = std::array<int64_t, kTogether>;  // ns

  explicit TimeColumns(size_t ends) : ends_(ends) {}
  bool Has(TaskId t) const { return t.index() < row_of_.size() && row_of_[t.index()] != kNone; }
  // `now`: what it is in the graph.
  Duration Of(size_t end, TaskId t, Duration now) const {
    if (!Has(t)) return now;
    const Row& row = rows_[row_of_[t.index()]];
    if (row.scaled) return row.from.Scaled(factors_[row.at].by[end]);
    return times_[row.at + end];
  }
  // At eight ends from `first` on; behind the last one, whatever. REQUIRES: Has(t).
  void ReadEight(TaskId t, size_t first, Eight& times) const;

  void Set(TaskId t, std::span<const Duration> times);
  // `now`, where it took the same at all ends until then, times the factor of each end. What is
  // not more than nothing stays. O(ends) where it had other times already.
  using Factors = uint32_t;
  Factors Add(std::span<const double> factors);  // one for each end, none below 0
  void Scale(TaskId t, Duration now, Factors by);
  void Reserve(size_t tasks) { rows_.reserve(rows_.size() + tasks); }  // that will be scaled
  // The same by one factor, of what has other times already.
  void Scale(TaskId t, double factor);
  void Forget(TaskId t) {
    if (Has(t)) row_of_[t.index()] = kNone;
  }
  void AddTasksTo(std::vector<TaskId>& tasks) const;  // in order
  // What those of `tasks` that have other times take together, by end, but for rounding, in ns.
  // O(tasks), and of what was set O(tasks x ends).
  std::vector<double> About(std::span<const TaskId> tasks) const;
  bool any() const { return !row_of_.empty(); }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Row {
    Duration from;        // where it is scaled
    size_t at;            // the factors, or its first time
    bool scaled = false;  // else the times are written out
  };
  struct FactorsOfEnds {
    std::vector<double> by;  // some more than ends
    Duration longest;        // that ReadEight() may scale in doubles
  };

  Row& RowOf(TaskId t);
  std::span<Duration> WriteOut(Row& row);

  size_t ends_;
  std::vector<uint32_t> row_of_;  // by task, as far as any has a row
  std::vector<Row> rows_;
  std::vector<FactorsOfEnds> factors_;
  std::vector<Duration> times_;  // of rows in turn, by end
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
