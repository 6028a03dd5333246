// What the marks of a recording say: ranges and layers as spans of threads, training steps, which
// of them had their layers marked, and facts about the process.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/string_pool.h"
#include "base/time.h"
#include "trace/trace.h"

namespace daydream {

// As MarkKind in proto/daydream_trace.proto, with the same numbers.
enum class MarkKind : uint8_t {
  kUnknown,
  kRangeBegin,
  kRangeEnd,
  kStep,
  kPoint,
  kLayerBegin,
  kLayerEnd,
  kBackwardEnter,
  kBackwardExit,
  kLabelsBegin,
  kLabelsEnd,
  kRank,
  kNote,
  kCollective,
};

struct RecordedMark {
  Instant at;
  LaneId lane;
  NameId name;
  MarkKind kind = MarkKind::kUnknown;
  int64_t value = 0;
  uint64_t bytes = 0;  // ranges of NCCL: what they move
};

// A range (kAnnotation) or a layer (kFrame, called by its path) of a thread.
struct MarkedSpan {
  LaneId lane;
  Instant begin, end;
  NameId name;
  EventKind kind = EventKind::kAnnotation;
  bool backward = false;  // a layer, told from marks of the backward pass
  uint64_t bytes = 0;     // as in RecordedMark
  NameId group;           // of a collective: as MARK_KIND_COLLECTIVE names it; None: not known
  int64_t number = -1;    // ... and which of that group's it is
};

struct MarkedStep {
  Instant begin, end;
  int64_t number = 0;
  bool labelled = false;  // its layers were marked, which costs time
};

struct MarkedProgram {
  std::vector<MarkedSpan> spans;
  LaneId step_lane;               // None: no steps were marked
  std::vector<MarkedStep> steps;  // in time order, each up to the next
  Rank rank;                      // -1: not marked
  std::vector<std::pair<std::string, std::string>> notes;
  uint64_t marks = 0;  // all
  uint64_t ends_without_begin = 0, begins_without_end = 0;
  uint64_t points = 0, other_steps = 0, unknown = 0;
};

// `end`: what is still open ends there. Marks come in any order, those of one thread and instant
// in theirs. O(n log n).
//
// Backward: a layer is entered when the gradient of its output is there and left when that of its
// input is. At any time the deepest of the layers that a thread entered and did not leave is the
// one being worked on; of equally deep ones the one entered last. The end of the backward pass
// leaves all (layers whose inputs have no gradient are never left otherwise).
MarkedProgram ReadMarks(std::vector<RecordedMark> marks, Instant end, StringPool& names);

}  // namespace daydream
