// What was found out about rows (scopes, names, tasks), one after another as somebody asks: for all
// graphs that have in common what it hangs on (graph/facts.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace daydream {

template <class RowId, class T>
class RowFacts {
 public:
  explicit RowFacts(size_t rows) : slots_(rows) {}
  RowFacts(RowFacts&&) noexcept = default;
  RowFacts(const RowFacts&) = delete;
  RowFacts& operator=(const RowFacts&) = delete;
  ~RowFacts() {
    for (std::atomic<const T*>& slot : slots_) delete slot.load();
  }

  bool Has(RowId row) const { return row.index() < slots_.size(); }
  // `find()` of the first who asks for this row; T() for what is no row. Several threads may ask.
  template <class Find>
  const T& Of(RowId row, Find find) const {
    if (!Has(row)) return nothing_;
    std::atomic<const T*>& slot = slots_[row.index()];
    const T* known = slot.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto found = std::make_unique<const T>(find());
    if (slot.compare_exchange_strong(known, found.get(), std::memory_order_acq_rel)) {
      known = found.release();
    }
    return *known;
  }

 private:
  mutable std::vector<std::atomic<const T*>> slots_;
  T nothing_{};
};

// The same for up to seven flags, in a byte a row.
template <class RowId>
class RowFlags {
 public:
  explicit RowFlags(size_t rows) : slots_(rows) {}

  // No flag for what is no row. `find()` is below 128.
  template <class Find>
  uint8_t Of(RowId row, Find find) const {
    constexpr uint8_t kKnown = 128;
    if (row.index() >= slots_.size()) return 0;
    std::atomic<uint8_t>& slot = slots_[row.index()];
    uint8_t known = slot.load(std::memory_order_relaxed);
    if (known == 0) slot.store(known = find() | kKnown, std::memory_order_relaxed);
    return known & ~kKnown;
  }

 private:
  mutable std::vector<std::atomic<uint8_t>> slots_;
};

}  // namespace daydream
