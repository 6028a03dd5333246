// Texts and their ids. Looking up takes no lock, adding takes one; nothing is ever freed, so a
// text stays valid until the process ends.
//
// The program decides how many different texts its marks and NVTX ranges have ("batch 1",
// "batch 2", ...), so each has a share of its own: however many come, the names of kernels, calls
// and layers still find room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace daydream::tracer {

// Whose text it is.
enum class NameUse : uint8_t { kRecorder, kMark, kNvtx };

// Ids count up from 1 in the order of the first Intern(); 0 is the empty text. A table is a
// global: it starts as zeros and has no destructor.
class NameTable {
 public:
  static constexpr size_t kMaxNames = size_t{1} << 20;
  static constexpr size_t kMaxBytes = size_t{64} << 20;   // of all texts
  static constexpr size_t kMaxLength = size_t{64} << 10;  // longer texts are cut
  // Of the names and bytes above, what marks may take, and what NVTX may take.
  static constexpr size_t kShare = 4;

  // 0 when there is no room for this use, or no memory: see dropped().
  uint32_t Intern(std::string_view text, NameUse use = NameUse::kRecorder);
  // Empty for an id that Intern() has not given.
  std::string_view Text(uint32_t id) const;
  // The highest id so far.
  uint32_t size() const { return size_.load(std::memory_order_acquire); }
  // Calls of Intern() that got 0 for a text.
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
  bool HasRoom(size_t bytes, NameUse use) const;

  std::mutex mutex_;
  std::atomic<Slots*> slots_{nullptr};
  std::atomic<Page*> pages_[kMaxNames / kPage + 1] = {};  // by id
  std::atomic<uint32_t> size_{0};
  std::atomic<uint64_t> dropped_{0};
  struct Used {
    size_t names = 0, bytes = 0;
  };
  Used used_[3] = {};  // by NameUse
};

// The names of marks and of everything that a Recording writes.
extern NameTable names;

}  // namespace daydream::tracer
