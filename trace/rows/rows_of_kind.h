// The rows of one kind, from a column of a byte a row: fast where they are few.
#pragma once

#include <cstddef>
#include <cstring>

#include "trace/trace.h"

namespace daydream {

// In order: `for (size_t row : RowsOf(trace, kind))`. Keeps a reference to the trace.
class RowsOf {
 public:
  struct End {};
  class Iterator {
   public:
    Iterator(const Trace& trace, EventKind kind) : trace_(trace), kind_(kind) { MoveTo(0); }
    size_t operator*() const { return row_; }
    Iterator& operator++() {
      MoveTo(row_ + 1);
      return *this;
    }
    friend bool operator==(const Iterator& at, End) { return at.row_ >= at.trace_.rows(); }

   private:
    // The first such row from there on, rows() where there is none.
    void MoveTo(size_t row) {
      const EventKind* const first = trace_.kind.data();
      row_ = trace_.rows();
      if (row >= row_) return;
      const void* found = std::memchr(first + row, static_cast<int>(kind_), row_ - row);
      if (found == nullptr) return;
      row_ = static_cast<size_t>(static_cast<const EventKind*>(found) - first);
    }

    const Trace& trace_;
    EventKind kind_;
    size_t row_ = 0;
  };

  RowsOf(const Trace& trace, EventKind kind) : trace_(trace), kind_(kind) {}
  Iterator begin() const { return {trace_, kind_}; }
  static End end() { return {}; }

 private:
  const Trace& trace_;
  EventKind kind_;
};

}  // namespace daydream
