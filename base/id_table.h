// A value by id, for ids that mostly follow one another: pages of 64 ids, made where the first of
// them is set. Windows of one program put together have ids far apart, which a plain array would
// pay for with its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace daydream {

// Looking up takes three loads, and of ids that follow one another mostly near ones: half the pages
// of a long recording are no longer in a cache when a hash would ask for them. Memory: 512 bytes
// where the ids of a page are far from all others, and one for 1024 ids up to the largest.
template <class Value>
class IdTable {
 public:
  explicit IdTable(Value none) : none_(none) {}

  // What was set last for the id, `none` where nothing was.
  Value Get(uint32_t id) const {
    const size_t region = id / kIdsOfRegion;
    if (region >= region_of_.size() || region_of_[region] == kNone) return none_;
    const uint32_t page = regions_[region_of_[region]][id / kIds % kPages];
    return page == kNone ? none_ : At(page)[id % kIds];
  }

  void Set(uint32_t id, Value value) {
    const size_t region = id / kIdsOfRegion;
    if (region >= region_of_.size()) region_of_.resize(region + 1, kNone);
    if (region_of_[region] == kNone) {
      region_of_[region] = static_cast<uint32_t>(regions_.size());
      regions_.emplace_back().fill(kNone);
    }
    uint32_t& page = regions_[region_of_[region]][id / kIds % kPages];
    if (page == kNone) {
      page = size_++;
      if (page % kPages == 0) {
        pages_.push_back(std::make_unique_for_overwrite<std::array<Page, kPages>>());
      }
      At(page).fill(none_);
    }
    At(page)[id % kIds] = value;
  }

 private:
  static constexpr uint32_t kIds = 64;    // of a page
  static constexpr uint32_t kPages = 64;  // of a region of ids; and that are made together
  static constexpr uint32_t kIdsOfRegion = kIds * kPages;
  static constexpr uint32_t kNone = UINT32_MAX;
  using Page = std::array<Value, kIds>;

  Page& At(uint32_t page) const { return (*pages_[page / kPages])[page % kPages]; }

  Value none_;
  uint32_t size_ = 0;                                             // of pages
  std::vector<uint32_t> region_of_;                               // into regions_
  std::vector<std::array<uint32_t, kPages>> regions_;             // of pages
  std::vector<std::unique_ptr<std::array<Page, kPages>>> pages_;  // which stay where they are
};

}  // namespace daydream
