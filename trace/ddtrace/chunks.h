// Walks the chunks of a .ddtrace file, in memory or streamed, and finds the next one again after
// damage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "trace/bytes/source.h"
#include "trace/ddtrace/format.h"

namespace daydream {

class DdtraceChunks {
 public:
  struct Chunk {
    DdtraceChunkHeader header;
    std::string_view payload;  // valid until the next call
    int64_t offset = 0;        // of the header in the file
  };

  explicit DdtraceChunks(ByteSource& source);

  // Checks the file magic. Fails on another format and on a newer major version.
  absl::Status Begin();
  // The next chunk with an intact header and all its bytes; nothing at the end of the file. Fails
  // only when the source does with something other than DataLoss.
  absl::StatusOr<std::optional<Chunk>> Next();
  // The payload of the last chunk was damaged: its size is not believed, and the search for the
  // next chunk goes on right behind its magic.
  void Reject();

  int64_t offset() const { return base_ + static_cast<int64_t>(pos_); }
  int64_t damaged_bytes() const { return damaged_bytes_; }
  int64_t first_damage() const { return first_damage_; }  // -1 = none

 private:
  // Makes `n` bytes from pos_ available; false when the input ends before.
  absl::StatusOr<bool> Ensure(size_t n);
  std::string_view Rest() const { return window_.substr(pos_); }
  void Skip(size_t n);

  ByteSource& source_;
  std::string buffer_;       // streamed input only
  std::string_view window_;  // what is in memory
  int64_t base_ = 0;         // offset of window_ in the file
  size_t pos_ = 0;           // in window_
  size_t chunk_size_ = 0;    // of the chunk handed out last, which lies before pos_
  bool at_end_ = false;      // window_ reaches the end of the input
  int64_t damaged_bytes_ = 0;
  int64_t first_damage_ = -1;
};

}  // namespace daydream
