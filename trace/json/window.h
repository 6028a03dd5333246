// The part of a text stream that a parser looks at: contiguous, padded, and refilled on request
// without losing what the parser still needs.
#pragma once

#include <memory>

#include "trace/bytes/source.h"
#include "trace/json/scan.h"

namespace daydream {

class JsonWindow {
 public:
  explicit JsonWindow(ByteSource& source) : source_(source) {}

  // The text is [p, end()); a parser moves `p` forward. kJsonPadding zero bytes follow end().
  const char* p = nullptr;
  const char* end() const { return end_; }
  // Position of `q` in the stream.
  int64_t Offset(const char* q) const { return end_offset_ - (end_ - q); }

  // Appends the next bytes of the stream behind [p, end()), which moves: pointers into the window
  // are void afterwards. False at the end of the stream or when reading failed (see failure()).
  bool Refill();
  // Why reading stopped; OK at the real end.
  const absl::Status& failure() const { return failure_; }

 private:
  // Makes room for so many bytes in `buffer_`, behind the first `kept` of them.
  void Reserve(size_t kept, size_t bytes);

  ByteSource& source_;
  // What is kept while the next bytes are read, and where they come behind it when the source has
  // no room in front of them.
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  const char* end_ = nullptr;
  int64_t end_offset_ = 0;
  bool ended_ = false;
  absl::Status failure_;
};

}  // namespace daydream
