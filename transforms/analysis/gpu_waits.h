// Calls that wait for the GPU: what each waits for, as far as the op around it and its name tell,
// and where in the program it is. Used by what removes waits and by what waits get in the way of.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/call_kinds.h"
#include "transforms/analysis/loader.h"

namespace daydream {

enum class WaitUse : uint8_t {
  kNone,      // does not wait for the GPU
  kSteers,    // by this value the program decides what to do next: sizes, branches, skipped steps
  kRead,      // reads a value; what for cannot be seen
  kData,      // copies to the host what is more than a value: results
  kSync,      // waits without reading anything
  kToDevice,  // a blocking copy to the GPU, which only needs its buffer back
  kFree,      // memory is given back
  kRanks,     // other processes have to arrive
  kLoader,    // inside the data loader
};
// "reads a value"
std::string_view WaitUseName(WaitUse use);

class GpuWaits {
 public:
  explicit GpuWaits(const Graph& graph);

  WaitUse UseOf(TaskId t) const { return use_[t.index()]; }

 private:
  enum class CopyTo : uint8_t { kNone, kHost, kResults, kDevice };

  void FindCopies();
  WaitUse Classify(TaskId t, bool unscaled);
  bool InOp(TaskId t, std::string_view part) const;

  const Graph& graph_;
  LoaderScopes loader_;
  CallKinds calls_;
  std::vector<TaskId> waits_;    // tasks that wait, some more than once
  std::vector<CopyTo> copy_to_;  // by task that waits for a copy
  std::vector<WaitUse> use_;     // by task
};

// Whether the host cannot go on without what the ops around `t` give: reads of single values, and
// ops whose output's size depends on values.
bool NeedsResult(const Graph& graph, TaskId t);

// Where a host task is: the op that contains it (else its call), the first line of the program's
// own Python code around it, and its layer; "aten::item at train.py(88) in head".
std::string SiteOf(const Graph& graph, TaskId t);

// Host time of a call as recorded, waiting included; its own time when there is no recording.
Duration RecordedHostTime(const Graph& graph, TaskId t);

// Adds up what happens at each place of the program, and tells the dearest places first. Numbers
// are of the measured steps where there are any.
class SiteList {
 public:
  void Add(const Graph& graph, TaskId task, std::string site, Duration host_time,
           bool counts = true);
  bool empty() const { return sites_.empty(); }
  size_t size() const { return sites_.size(); }
  // "2 times a step at aten::item, decides what is launched next (3.2 ms of host time a step)"; at
  // most `most` lines, and one for the others.
  std::vector<std::string> Lines(const Graph& graph, size_t most) const;

 private:
  struct Seen {
    size_t count = 0;
    Duration time;
  };
  struct Site {
    Seen ever, measured;
  };
  std::map<std::string, Site> sites_;
};

}  // namespace daydream
