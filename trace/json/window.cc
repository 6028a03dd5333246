#include "trace/json/window.h"

#include <algorithm>
#include <cstring>

namespace daydream {

static_assert(ByteSource::kRoomBehind >= kJsonPadding);

void JsonWindow::Reserve(size_t kept, size_t bytes) {
  if (bytes <= capacity_) return;
  const size_t capacity = std::max(bytes, capacity_ * 2);
  auto grown = std::make_unique_for_overwrite<char[]>(capacity);
  if (kept > 0) std::memcpy(grown.get(), buffer_.get(), kept);
  buffer_ = std::move(grown);
  capacity_ = capacity;
}

bool JsonWindow::Refill() {
  if (ended_) return false;
  // The source may write where it wrote before: what is kept is taken out of its way.
  const auto kept = static_cast<size_t>(end_ - p);
  const bool own = kept > 0 && p >= buffer_.get() && p < buffer_.get() + capacity_;
  if (own) {
    std::memmove(buffer_.get(), p, kept);
  } else if (kept > 0) {
    Reserve(0, kept);
    std::memcpy(buffer_.get(), p, kept);
  }
  absl::StatusOr<std::string_view> more = source_.Next();
  const bool any = more.ok() && !more->empty();
  if (const size_t room = source_.RoomInFront(); any && room > 0 && kept <= room) {
    char* chunk = const_cast<char*>(more->data());  // which is writable, as the source says
    if (kept > 0) std::memcpy(chunk - kept, buffer_.get(), kept);
    p = chunk - kept;
    end_ = chunk + more->size();
  } else {
    const size_t size = any ? more->size() : 0;
    Reserve(kept, kept + size + kJsonPadding);
    if (any) std::memcpy(buffer_.get() + kept, more->data(), size);
    p = buffer_.get();
    end_ = p + kept + size;
  }
  std::memset(const_cast<char*>(end_), 0, kJsonPadding);
  if (!any) {
    ended_ = true;
    if (!more.ok()) failure_ = more.status();
    return false;
  }
  end_offset_ += static_cast<int64_t>(more->size());
  return true;
}

}  // namespace daydream
