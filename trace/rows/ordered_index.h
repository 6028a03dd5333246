// What belongs to a key, of tables that are written in the order of their keys and read in about
// the same order: a lookup goes on from where the last one was. 8 bytes beside each value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

namespace daydream {

template <class Value>
class OrderedIndex {
 public:
  // Of two values of one key the later holds. Amortised O(1).
  void Add(int64_t key, Value value) {
    sorted_ = sorted_ && (rows_.empty() || rows_.back().first < key);
    rows_.emplace_back(key, std::move(value));
  }

  // nullptr: nothing belongs to it. O(1) near the last one, else O(log n); the first after Add()
  // sorts where keys came in no order.
  Value* Find(int64_t key) {
    if (!sorted_) Sort();
    constexpr size_t kNear = 8;
    const size_t end = std::min(last_ + kNear, rows_.size());
    for (size_t i = last_; i < end && rows_[i].first <= key; ++i) {
      if (rows_[i].first == key) return last_ = i, &rows_[i].second;
    }
    const auto it = std::lower_bound(rows_.begin(), rows_.end(), key,
                                     [](const auto& row, int64_t k) { return row.first < k; });
    if (it == rows_.end()) return nullptr;
    last_ = static_cast<size_t>(it - rows_.begin());
    return it->first == key ? &it->second : nullptr;
  }

 private:
  void Sort() {
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t kept = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i + 1 < rows_.size() && rows_[i + 1].first == rows_[i].first) continue;
      if (kept != i) rows_[kept] = std::move(rows_[i]);
      ++kept;
    }
    rows_.resize(kept);
    sorted_ = true, last_ = 0;
  }

  std::deque<std::pair<int64_t, Value>> rows_;  // grows without a copy
  size_t last_ = 0;
  bool sorted_ = true;
};

}  // namespace daydream
