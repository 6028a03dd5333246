// A stream of uncompressed bytes, whatever the file was packed with: plain, gzip or zstd, from a
// file, a pipe or memory. Never holds more than a few chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The next bytes, valid until the next call; empty = end. Fails with DataLoss on a damaged
  // stream (after all intact bytes were handed out) and with ResourceExhausted past `limit`.
  virtual absl::StatusOr<std::string_view> Next() = 0;

  // The first bytes without consuming them (at least 4 KiB unless the input is shorter).
  virtual absl::StatusOr<std::string_view> Peek() = 0;

  // The whole input when it is uncompressed and in memory; empty otherwise. A reader that can jump
  // (our own format) uses it; others use Next().
  virtual std::string_view InMemory() const { return {}; }

  // Where the input lies, when it is an uncompressed file; empty otherwise. For libraries that open
  // files themselves.
  virtual std::string Path() const { return {}; }

  // Bytes in front of what Next() hands out that the caller may write to; as many as kRoomBehind
  // follow it then; 0: nothing may be written, neither in front nor behind. Who keeps a few bytes
  // of the chunk before puts them there instead of copying the new one.
  virtual size_t RoomInFront() const { return 0; }
  static constexpr size_t kRoomBehind = 64;

  // Bytes consumed and total size of the input as stored; total -1 = unknown (pipe).
  virtual int64_t consumed() const = 0;
  virtual int64_t total() const = 0;
  // File name without folders, for messages.
  const std::string& name() const { return name_; }

 protected:
  std::string name_;
};

// Opens a file ("-" = standard input). Errors say what the path is: missing, a directory,
// unreadable, empty. `limit` bounds the uncompressed bytes. A file that ends before the size that
// it had when it was opened fails with E0213 there.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path, int64_t limit);
// All bytes of a source, for formats that no reader can take in pieces; `progress`, when there is
// one, is told how far it came (consumed, total) after each chunk.
absl::StatusOr<std::string> ReadAll(ByteSource& source,
                                    const std::function<void(int64_t, int64_t)>& progress = {});
// Reads `bytes`, which must outlive the source.
std::unique_ptr<ByteSource> OpenBytes(std::string_view bytes, std::string name, int64_t limit);

}  // namespace daydream
