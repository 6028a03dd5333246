// Text stored once. Interning the same text twice gives the same NameId; ids count up from 0,
// and id 0 is always the empty text. Views returned by Get() live as long as the pool.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

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

 private:
  std::deque<std::string> texts_;  // addresses stay put while the pool grows
  std::unordered_map<std::string_view, NameId> ids_;
  size_t text_bytes_ = 0;
};

}  // namespace daydream
