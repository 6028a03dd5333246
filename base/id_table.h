// A value by id, for ids that mostly follow one another: pages of 64 ids, made where the first of
// them is set. Windows of one program put together have ids far apart, which a plain array would
// pay for with its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace daydream {

// Looking up remembers where the last id was: not for several threads at once.
template <class Value>
class IdTable {
 public:
  explicit IdTable(Value none) : none_(none) {}

  // What was set last for the id, `none` where nothing was.
  Value Get(uint32_t id) const {
    const size_t page = PageOf(id);
    return page == kNoPage ? none_ : pages_[page][id % kIds];
  }

  void Set(uint32_t id, Value value) {
    size_t page = PageOf(id);
    if (page == kNoPage) {
      page = last_page_ = pages_.size();
      pages_.emplace_back().fill(none_);
      page_of_[id / kIds] = static_cast<uint32_t>(page);
    }
    pages_[page][id % kIds] = value;
  }

 private:
  static constexpr uint32_t kIds = 64;
  static constexpr size_t kNoPage = SIZE_MAX;

  size_t PageOf(uint32_t id) const {
    if (id / kIds == last_) return last_page_;
    const auto found = page_of_.find(id / kIds);
    last_ = id / kIds;
    return last_page_ = found == page_of_.end() ? kNoPage : found->second;
  }

  Value none_;
  std::vector<std::array<Value, kIds>> pages_;
  std::unordered_map<uint32_t, uint32_t> page_of_;  // by id / kIds
  mutable uint32_t last_ = UINT32_MAX;              // the page of ids asked for last: no such one
  mutable size_t last_page_ = kNoPage;
};

}  // namespace daydream
