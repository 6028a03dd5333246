// A value by id, for ids that mostly follow one another: pages of 64 ids, made where the first of
// them is set. Windows of one program put together have ids far apart, which a plain array would
// pay for with its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace daydream {

// Looking up remembers where the last id was: not for several threads at once.
template <class Value>
class IdTable {
 public:
  explicit IdTable(Value none) : none_(none) {}
  IdTable(const IdTable&) = delete;
  IdTable& operator=(const IdTable&) = delete;

  // What was set last for the id, `none` where nothing was.
  Value Get(uint32_t id) const {
    const Page* page = PageOf(id);
    return page == nullptr ? none_ : (*page)[id % kIds];
  }

  void Set(uint32_t id, Value value) {
    Page* page = PageOf(id);
    if (page == nullptr) {
      page = last_page_ = &pages_.emplace_back();
      page->fill(none_);
      page_of_[id / kIds] = page;
    }
    (*page)[id % kIds] = value;
  }

 private:
  static constexpr uint32_t kIds = 64;
  using Page = std::array<Value, kIds>;

  Page* PageOf(uint32_t id) const {
    if (id / kIds == last_) return last_page_;
    const auto found = page_of_.find(id / kIds);
    last_ = id / kIds;
    return last_page_ = found == page_of_.end() ? nullptr : found->second;
  }

  Value none_;
  std::deque<Page> pages_;                       // which stay where they are
  std::unordered_map<uint32_t, Page*> page_of_;  // by id / kIds
  mutable uint32_t last_ = UINT32_MAX;           // the page of ids asked for last: no such one
  mutable Page* last_page_ = nullptr;
};

}  // namespace daydream
