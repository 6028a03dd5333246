// The reader's side of a .ddtrace dictionary: ids are dense, but a lost chunk leaves holes, and a
// damaged file may claim any id.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace daydream {

template <class T>
class DdtraceDictionary {
 public:
  // Ids that were never seen but lie below one that was: at most this many per dictionary, so
  // that a wild id costs no memory. A lost chunk of 64 Ki rows skips at most 64 Ki ids of a kind.
  static constexpr uint64_t kMaxHoles = 1 << 18;

  // Puts `value` at `id`. False when the id is taken or too far away; then nothing changes.
  bool Set(uint64_t id, T value) {
    if (id < items_.size()) {
      if (items_[id].known) return false;
      items_[id] = {true, std::move(value)};
      return true;
    }
    const uint64_t holes = id - items_.size();
    if (holes_ + holes > kMaxHoles || id >= UINT32_MAX) return false;
    holes_ += holes;
    items_.resize(id);
    items_.push_back({true, std::move(value)});
    return true;
  }
  // The value at `id`, or nullptr.
  T* Find(uint64_t id) {
    return id < items_.size() && items_[id].known ? &items_[id].value : nullptr;
  }

 private:
  struct Item {
    bool known = false;
    T value{};
  };
  std::vector<Item> items_;
  uint64_t holes_ = 0;
};

}  // namespace daydream
