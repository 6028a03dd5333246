// What rows of a sweep begin with: applications that several rows in turn have in common are
// applied once, with what was told of them.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/predict/causes.h"
#include "report/predict/graph_copies.h"
#include "report/predict/what_if.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/core/editor.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// What is written down of applications.
struct Noted {
  std::vector<std::string>& left_out;
  Changes& changes;
  bool& bound;
  std::vector<CauseJournal>& journals;
  MemoryTrail& trail;

  // What the next one did to `graph`; null: nothing. `limits_hold`: WhatIfOptions::limits_hold.
  void Add(const Application& application, const Graph& graph, Applied* applied, bool limits_hold);
};

// A step that was played elsewhere: the graph beside it is only like the one that was.
struct PlayedStep {
  Duration step;
  std::vector<Duration> periods;  // StepPeriods()
  bool as_recorded = false;       // PlaysAlike() the recorded graph
};

class BegunRows {
 public:
  // After some applications.
  struct Begun {
    GraphCopies::Copy graph = {};
    std::vector<std::string> left_out = {};
    Changes changes = {};
    bool bound = false;
    std::vector<CauseJournal> journals = {};
    MemoryTrail trail;
    std::optional<WholeWork> work = {};     // where it is known
    std::optional<PlayedStep> played = {};  // likewise; then times of `graph` are others

    Noted noted() { return {left_out, changes, bound, journals, trail}; }
  };

  // `tasks`: of the recorded graph.
  explicit BegunRows(size_t tasks);

  // Null: it is not kept. Those that were asked for last are, as many as have a million tasks in
  // all. May be called from several threads, as all of this.
  std::shared_ptr<const Begun> Find(std::span<const Application> list, EditNotes notes);
  // Whether it would be used: a row before asked for it, too, and found nothing.
  bool IsWanted(std::span<const Application> list, EditNotes notes);
  void Keep(std::span<const Application> list, EditNotes notes, Begun begun);

 private:
  using Key = std::string;  // the applications, and what is kept of their edits

  const size_t most_;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Begun>>> kept_;  // the last asked for first
  std::list<std::pair<Key, size_t>> missed_;                      // how often; likewise
};

}  // namespace daydream
