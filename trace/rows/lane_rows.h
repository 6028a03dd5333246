// The rows of one lane while a trace is collected: taken as they come, handed out in order of time.
// Their memory is given back while they are handed out, so that whoever puts them elsewhere needs
// no second copy of a lane, let alone of the trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/ids.h"
#include "base/time.h"
#include "trace/trace.h"

namespace daydream {

struct TraceRow {
  Instant start;
  Duration duration;
  NameId name;
  uint32_t correlation = 0, detail = Id<void>::kNoneValue;
  EventKind kind = EventKind::kOp;
  bool left_out = false;  // becomes no row of the trace
};
static_assert(sizeof(TraceRow) == 32);

class LaneRows {
 public:
  // Bytes that the lanes of a trace may have of the heap, short lanes aside: who sorts the next
  // ones and writes the trace uses them again. What is mapped is touched for the first time, page
  // by page.
  static constexpr size_t kOfHeap = 4 << 20;

  // `heap_left`: of kOfHeap, for all lanes. Amortised O(1). REQUIRES: fewer than 2^32 rows.
  void Add(const TraceRow& row, size_t& heap_left) {
    if (next_ == end_) AddBlock(heap_left);
    Block& block = blocks_.back();
    block.earliest = std::min(block.earliest, row.start);
    latest_ = std::max(latest_, row.start + row.duration);
    // One by one: a copy of what was only just put together waits until all of that is written.
    TraceRow& to = *next_++;
    to.start = row.start, to.duration = row.duration, to.name = row.name;
    to.correlation = row.correlation, to.detail = row.detail;
    to.kind = row.kind, to.left_out = row.left_out;
  }
  void Add(const TraceRow& row) {
    size_t none = 0;
    Add(row, none);
  }
  uint32_t size() const;
  // The first start and the last end of all rows that were added, left out or not; the first is
  // behind the last where there are none.
  std::pair<Instant, Instant> Extent() const;

  // In the order of Add().
  template <class Fn>
  void ForEach(const Fn& fn) {
    for (Block& block : blocks_) std::for_each(block.rows.get(), EndOf(block), fn);
  }

  // Calls `take(row, place)` for each row by start, longer first, as added; `place` counts from 0
  // in the order of Add(). No rows are left. O(n log n); O(n) for a few sequences that are in order
  // but for rows a little too late, which is how profilers write. Holds what was not handed out yet
  // and the blocks that rows are being taken from: a few, unless times are in no order at all.
  template <class Take>
  void HandOut(const Take& take) {
    HandOutRuns([&](const Run& run) {
      for (uint16_t at : run.order) take(run.rows[at], run.first_place + at);
    });
  }

  // Some of them: rows[order[0]], rows[order[1]], ..., with their places behind `first_place`.
  struct Run {
    const TraceRow* rows;
    uint32_t first_place;
    std::span<const uint16_t> order;
  };
  void HandOutRuns(absl::FunctionRef<void(const Run&)> take);

 private:
  struct FreeRows {
    size_t bytes = 0;
    bool mapped = false;
    void operator()(TraceRow* rows) const;
  };
  struct Block {
    std::unique_ptr<TraceRow, FreeRows> rows;
    uint32_t first_place = 0;
    Instant earliest{INT64_MAX};
  };
  void AddBlock(size_t& heap_left);
  TraceRow* EndOf(const Block& block) const {
    return &block == &blocks_.back() ? next_ : block.rows.get() + RowsIn(block);
  }
  static size_t RowsIn(const Block& block) {
    return block.rows.get_deleter().bytes / sizeof(TraceRow);
  }

  std::vector<Block> blocks_;
  Instant latest_{INT64_MIN};                  // end of a row
  TraceRow *next_ = nullptr, *end_ = nullptr;  // free part of the last block
};

}  // namespace daydream
