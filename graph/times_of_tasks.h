// What ValidateButCycles() asks of the times of tasks, for a graph whose ids and lanes are known to
// be right: gathered where its tasks are read anyway.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/graph.h"

namespace daydream {

class TimesOfTasks {
 public:
  void Add(const Task& t) {
    const bool gap = t.gap.ns >= 0 || IsGpu(t.kind) || t.kind == TaskKind::kDelay;
    const bool own = t.duration.ns >= 0 && (t.kind != TaskKind::kWait || t.duration.ns == 0);
    well_ &= gap && own && t.earliest.ns >= 0;
    AddLength(t);
  }
  // Only for AreFarFromLimit(), which a negative duration or earliest is never far for.
  void AddLength(const Task& t) {
    bits_ |= static_cast<uint64_t>(t.duration.ns) | static_cast<uint64_t>(t.earliest.ns);
    Add(t.gap.ns);
  }
  // None of them is one that ValidateButCycles() refuses by itself.
  bool well() const { return well_; }
  // Nor are all together too long for a replay: true of nearly all that are not. REQUIRES: all
  // tasks of the graph were added. O(edges).
  bool AreFarFromLimit(const Graph& graph) const;
  // The same of as many tasks as were added, beside what takes `more` ns at the most. O(1).
  bool AreFarFromLimit(size_t tasks, uint64_t more) const;

 private:
  void Add(int64_t v) { bits_ |= static_cast<uint64_t>(v ^ (v >> 63)); }

  bool well_ = true;
  uint64_t bits_ = 0;  // with 1 added no less than any of the numbers
};

}  // namespace daydream
