// A value by id, for ids that mostly follow one another: pages of 64 ids, made where the first of
// them is set. Windows of one program put together have ids far apart, which a plain array would
// pay for with its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace daydream {

// Looking up remembers where the last ids were: not for several threads at once.
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
      page = NewPage();
      page->fill(none_);
      page_of_[id / kIds] = page;
      RecentOf(id).at = page;
    }
    (*page)[id % kIds] = value;
  }

 private:
  static constexpr uint32_t kIds = 64;
  static constexpr size_t kPages = 32;  // that are made together
  using Page = std::array<Value, kIds>;

  // A page that was asked for: those of threads and streams take turns.
  struct Recent {
    uint32_t page = UINT32_MAX;  // no such one
    Page* at = nullptr;
  };
  Recent& RecentOf(uint32_t id) const { return recent_[id / kIds % recent_.size()]; }

  Page* PageOf(uint32_t id) const {
    Recent& recent = RecentOf(id);
    if (recent.page != id / kIds) {
      const auto found = page_of_.find(id / kIds);
      recent = {id / kIds, found == page_of_.end() ? nullptr : found->second};
    }
    return recent.at;
  }

  Page* NewPage() {
    const size_t place = page_of_.size() % kPages;
    if (place == 0) pages_.push_back(std::make_unique_for_overwrite<std::array<Page, kPages>>());
    return &(*pages_.back())[place];
  }

  Value none_;
  std::vector<std::unique_ptr<std::array<Page, kPages>>> pages_;
  absl::flat_hash_map<uint32_t, Page*> page_of_;  // by id / kIds
  mutable std::array<Recent, 256> recent_;
};

}  // namespace daydream
