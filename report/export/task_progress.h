// How far an export of timelines is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "report/export/side.h"

namespace daydream {

// Hears now and then how many of the tasks of all sides are written. False: no more is wanted.
using TasksWritten = std::function<bool(uint64_t done, uint64_t total)>;

class TaskProgress {
 public:
  // `hear` may be empty. Keeps a reference to it.
  TaskProgress(std::span<const Side> sides, const TasksWritten& hear) : hear_(hear) {
    for (const Side& side : sides) all_ += side.graph->size();
  }

  // False: no more is wanted.
  bool Wrote() {
    if (++written_ % kBetween != 0 || !hear_) return true;
    return hear_(before_ + written_, all_);
  }
  // Tasks that take no time are not written.
  void WroteSide(const Side& side) {
    before_ += side.graph->size();
    written_ = 0;
  }

 private:
  static constexpr uint64_t kBetween = 1 << 13;  // milliseconds
  const TasksWritten& hear_;
  uint64_t all_ = 0, before_ = 0, written_ = 0;
};

}  // namespace daydream
