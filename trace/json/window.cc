#include "trace/json/window.h"

#include <algorithm>
#include <cstring>

namespace daydream {

bool JsonWindow::Refill() {
  if (ended_) return false;
  absl::StatusOr<std::string_view> more = source_.Next();
  if (!more.ok() || more->empty()) {
    ended_ = true;
    if (!more.ok()) failure_ = more.status();
    return false;
  }
  auto kept = static_cast<size_t>(end_ - p);
  size_t needed = kept + more->size() + kJsonPadding;
  if (needed > capacity_) {
    size_t capacity = std::max(needed, capacity_ * 2);
    auto grown = std::make_unique_for_overwrite<char[]>(capacity);
    if (kept > 0) std::memcpy(grown.get(), p, kept);
    buffer_ = std::move(grown);
    capacity_ = capacity;
  } else if (kept > 0) {
    std::memmove(buffer_.get(), p, kept);
  }
  std::memcpy(buffer_.get() + kept, more->data(), more->size());
  p = buffer_.get();
  end_ = p + kept + more->size();
  std::memset(buffer_.get() + kept + more->size(), 0, kJsonPadding);
  end_offset_ += static_cast<int64_t>(more->size());
  return true;
}

}  // namespace daydream
