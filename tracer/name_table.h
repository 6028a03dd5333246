// Texts and their ids. Looking up takes no lock, adding takes one; nothing is ever freed, so a
// text stays valid until the process ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace daydream::tracer {

// Ids count up from 1 in the order of the first Intern(); 0 is the empty text. A table is a
// global: it starts as zeros and has no destructor.
class NameTable {
 public:
  static constexpr size_t kMaxNames = size_t{1} << 20;
  static constexpr size_t kMaxBytes = size_t{64} << 20;   // of all texts
  static constexpr size_t kMaxLength = size_t{64} << 10;  // longer texts are cut

  // 0 when the table is full or memory ran out: see dropped().
  uint32_t Intern(std::string_view text);
  // Empty for an id that Intern() has not given.
  std::string_view Text(uint32_t id) const;
  // The highest id so far.
  uint32_t size() const { return size_.load(std::memory_order_acquire); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  // Held while the process forks, so that the child finds the table whole.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Entry;
  struct Slots;
  static constexpr size_t kPage = 4096;
  using Page = std::atomic<const Entry*>;

  const Entry* Find(const Slots* slots, size_t hash, std::string_view text) const;
  Slots* Grow(const Slots* old);
  bool Publish(Slots* slots, Entry* entry);

  std::mutex mutex_;
  std::atomic<Slots*> slots_{nullptr};
  std::atomic<Page*> pages_[kMaxNames / kPage + 1] = {};  // by id
  std::atomic<uint32_t> size_{0};
  std::atomic<uint64_t> dropped_{0};
  size_t bytes_ = 0;
};

// The names of marks and of everything that a Recording writes.
extern NameTable names;

}  // namespace daydream::tracer
