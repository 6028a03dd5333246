#include "trace/json/keys.h"

#include <algorithm>

namespace daydream {

size_t JsonKeys::Learn(size_t at, size_t context, std::string_view text, Key key) {
  if (text.size() > kLongest || text.empty()) return 0;
  size_t found = kContexts + 1;
  const auto is_known = [&](size_t i) {
    return contexts_[i] == context &&
           std::string_view(texts_[i].bytes.data(), texts_[i].size) == text;
  };
  while (found < texts_.size() && !is_known(found)) ++found;
  if (found == texts_.size()) {
    if (texts_.size() >= kMost) return 0;
    Text& learned = texts_.emplace_back();
    std::copy(text.begin(), text.end(), learned.bytes.begin());
    for (size_t i = 0; i < text.size(); ++i)
      learned.same[i / 16] = static_cast<uint16_t>(learned.same[i / 16] | 1U << i % 16);
    learned.size = static_cast<uint8_t>(text.size());
    learned.key = key;
    contexts_.push_back(static_cast<uint8_t>(context));
  }
  if (at == 0) return found;  // behind something that is not among the texts
  auto& next = texts_[at].next;
  std::move_backward(next.begin(), next.end() - 1, next.end());
  next[0] = static_cast<uint16_t>(found);
  return found;
}

}  // namespace daydream
