#include "base/string_pool.h"

namespace daydream {

NameId StringPool::Intern(std::string_view text) {
  if (auto it = ids_.find(text); it != ids_.end()) return it->second;
  NameId id(texts_.size());
  texts_.emplace_back(text);
  text_bytes_ += text.size();
  ids_.emplace(texts_.back(), id);
  return id;
}

NameId StringPool::Find(std::string_view text) const {
  auto it = ids_.find(text);
  return it == ids_.end() ? NameId::None() : it->second;
}

}  // namespace daydream
