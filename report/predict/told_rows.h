// Rows of a sweep that differ in a number which only sets times: their list is applied once, with
// columns of what tasks take in each of them (transforms/core/ends.h).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "graph/retimed.h"
#include "report/predict/begun_rows.h"
#include "report/predict/replays.h"
#include "transforms/core/ends.h"

namespace daydream {

// The only application in which the lists differ, where that is by what a user states of times, and
// all behind it tells what it does with other times (AtEnds). Else none.
std::optional<size_t> PlaceOfTimes(std::span<const Application> a, std::span<const Application> b);

class ToldRows {
  struct GiveBack {
    ToldRows* home = nullptr;
    void operator()(BegunRows::Begun* row) const { home->Keep(row); }
  };

 public:
  using Row = std::unique_ptr<BegunRows::Begun, GiveBack>;  // may not outlive the ToldRows

  // What comes before any row is applied, and has to outlive the ToldRows: the recorded graph, and
  // copies of it.
  struct Recorded {
    const Graph& graph;
    GraphCopies& copies;
    const MemoryProfile& memory;
    Replays& replays;
    EditNotes notes = EditNotes::kKept;  // for causes of all rows
    bool limits_hold = false;            // WhatIfOptions::limits_hold
    bool graphs = false;                 // TakeGraph() will be asked for
  };

  // Each two of `rows` have the same PlaceOfTimes(). Null: it cannot be told, or each row by itself
  // is as quick. O(one application of the list, and rows x tasks that take other times); where the
  // user states all that the list does, rows are played here, too.
  static std::unique_ptr<ToldRows> Make(const Recorded& recorded,
                                        std::span<const std::vector<Application>* const> rows);

  // After all of its applications; null: the row has edits of its own. May be called from several
  // threads. O(tasks that take other times), and for each thread once O(tasks + edges).
  Row Take(size_t row);
  // The same with a graph of its own, for the interval; null also where Take() has one, or nobody
  // was going to ask. O(tasks that take other times).
  Row TakeGraph(size_t row);

 private:
  struct Times {
    Duration duration, gap;
    bool operator==(const Times&) const = default;
  };
  // A task, or what an edit changed, in each row: from there on in `times_`.
  struct Told {
    uint32_t journal;  // of an edit
    uint32_t at;       // the edit in its journal, or the task
    size_t times;      // kInFirst: it is part of the first edit of its task
  };
  static constexpr size_t kInFirst = SIZE_MAX;
  static constexpr uint32_t kNone = 0xffffffff;
  class Notes;

  ToldRows(const Recorded& recorded, size_t rows)
      : recorded_(recorded),
        width_(rows),
        alone_(rows, false),
        longer_(rows),
        lead_{.trail = MemoryTrail(recorded.memory)},
        columns_({}) {}
  // Where the user states all times: eight rows at once, without a graph of each. False: gaps
  // became less than nothing, or there is no batch.
  bool PlayAll(EndColumns columns);
  // A task that takes other times in some row, and what it takes in the recorded graph and the
  // first row.
  struct Played {
    TaskId task;
    TaskKind kind;
    Times recorded, first;
  };
  // Which rows take longer than the first, and are alone, and what the first takes.
  void FindAlone();
  // False: a gap became less than nothing.
  bool PlayEight(size_t first, StepBatch& batch);
  // What rows take longer than the first, and which are alone, by what is told of tasks.
  void FindWork(const EndColumns& columns);
  void SetEdits(size_t row, std::span<const Told> told, uint32_t journal,
                std::vector<Editor::Edit>& edits) const;
  void Keep(BegunRows::Begun* row);

  const Recorded recorded_;
  const size_t width_;
  // By row.
  std::vector<bool> alone_;
  std::vector<Duration> longer_;  // than the first one, all tasks together
  BegunRows::Begun lead_;         // the first row; without a graph where all were played
  size_t first_behind_ = 0;       // the first journal of an application behind the one that differs
  std::vector<Told> edits_, tasks_;  // the edits by journal, in order
  std::vector<Times> times_;
  std::vector<PlayedStep> played_;  // by row, where all were played
  EndColumns columns_;              // likewise, while they are played and for TakeGraph()
  std::vector<Played> tasks_played_;
  RetimedTasks others_;  // that all rows have alike, but not as recorded
  std::mutex mutex_;
  std::vector<std::unique_ptr<BegunRows::Begun>> spare_;
};

}  // namespace daydream
