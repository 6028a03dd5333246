// What tasks take at the ends of open parameters, beside what they take in the graph that is being
// edited: columns of durations, so that an end which changes times only needs no graph of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "transforms/core/params.h"

namespace daydream {

// Durations by end, for some tasks; the others take the same at all ends.
class EndColumns {
 public:
  // One end: a parameter of one application of a list has another value, all others are as given.
  struct End {
    size_t application;
    Params params;  // of that application
  };
  explicit EndColumns(std::vector<End> ends) : ends_(std::move(ends)) {}

  size_t size() const { return ends_.size(); }
  // Application `i` of the list comes next, with `params` at the ends of others.
  void Begin(size_t i, const Params& params);
  const Params& params(size_t end) const { return *params_[end]; }

  bool Has(TaskId t) const { return row_of_.contains(t); }
  // `now`: what it takes in the graph.
  Duration Of(size_t end, TaskId t, Duration now) const {
    const auto row = row_of_.find(t);
    return row == row_of_.end() ? now : times_[row->second * size() + end];
  }
  void Set(TaskId t, std::span<const Duration> times);
  void Forget(TaskId t) { row_of_.erase(t); }
  std::vector<TaskId> tasks() const;  // for which Has(), in order

 private:
  std::vector<End> ends_;
  std::vector<const Params*> params_;
  absl::flat_hash_map<TaskId, size_t> row_of_;
  std::vector<Duration> times_;  // [row][end]
};

// An end, as what is to be known there for finding a time.
struct EndView {
  const Graph& graph;
  const EndColumns& columns;
  size_t end;

  const Params& params() const { return columns.params(end); }
  Duration DurationOf(TaskId t) const { return columns.Of(end, t, graph.task(t).duration); }
};

}  // namespace daydream
