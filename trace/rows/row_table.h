// A table whose equal rows are stored once: a vector of rows and a hash index of row numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/hash/hash.h"

namespace daydream {

// Hash is a function object over T. Rows are found again by operator==.
template <class T, class Hash>
class RowTable {
 public:
  // The row that equals `value`, appended to `rows` when there is none. O(1) amortised.
  uint32_t Add(std::vector<T>& rows, const T& value) {
    if ((rows.size() + 1) * 4 > slots_.size() * 3) Grow(rows);
    size_t mask = slots_.size() - 1;
    for (size_t i = Hash()(value) & mask;; i = (i + 1) & mask) {
      if (slots_[i] == kFree) {
        slots_[i] = static_cast<uint32_t>(rows.size());
        rows.push_back(value);
        return slots_[i];
      }
      if (rows[slots_[i]] == value) return slots_[i];
    }
  }

 private:
  static constexpr uint32_t kFree = 0xffffffff;

  void Grow(const std::vector<T>& rows) {
    slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, kFree);
    size_t mask = slots_.size() - 1;
    for (size_t row = 0; row < rows.size(); ++row) {
      size_t i = Hash()(rows[row]) & mask;
      while (slots_[i] != kFree) i = (i + 1) & mask;
      slots_[i] = static_cast<uint32_t>(row);
    }
  }

  std::vector<uint32_t> slots_;
};

}  // namespace daydream
