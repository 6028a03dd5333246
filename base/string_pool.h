// Text stored once. Interning the same text twice gives the same NameId; ids count up from 0,
// and id 0 is always the empty text. Views returned by Get() live as long as the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace daydream {

class StringPool {
 public:
  StringPool() { Intern(""); }
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;

  // O(length). Text is copied the first time only.
  NameId Intern(std::string_view text);
  // The id of `text`, or None when it was never interned.
  NameId Find(std::string_view text) const;
  // REQUIRES: `id` came from this pool.
  std::string_view Get(NameId id) const { return texts_[id.index()]; }
  size_t size() const { return texts_.size(); }
  // Bytes of text held, without bookkeeping.
  size_t text_bytes() const { return text_bytes_; }
  // Bytes held with bookkeeping.
  size_t MemoryBytes() const;

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t id = NameId::kNoneValue;
  };

  // The slot that holds `text`, or the free slot where it belongs.
  size_t Probe(std::string_view text, uint32_t hash) const;
  std::string_view Store(std::string_view text);
  void Grow();

  std::vector<std::string_view> texts_;          // by id, into blocks_
  std::vector<Slot> slots_;                      // open addressing, a power of two
  std::vector<std::unique_ptr<char[]>> blocks_;  // addresses stay put while the pool grows
  char* next_ = nullptr;                         // free part of the last block
  size_t block_left_ = 0;
  size_t block_bytes_ = 0;
  size_t text_bytes_ = 0;
};

}  // namespace daydream
