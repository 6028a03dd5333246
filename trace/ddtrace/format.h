// The payloads of a .ddtrace file's chunks: packing and unpacking them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "trace/ddtrace/frame.h"

struct ZSTD_CCtx_s;  // of zstd.h

namespace daydream {

// What stands in a file where a row refers to nothing.
inline constexpr uint32_t kNone = Id<void>::kNoneValue;

// Packs chunks with zstd, level 3. Keeps what that takes from one to the next: to get it ready,
// zstd asks which processor this is, which on a virtual machine takes longer than a small chunk.
class ChunkPacker {
 public:
  // Header and payload of one chunk, ready to be written; until the next. Fails when `message` is
  // larger than kDdtraceMaxRaw. Fills codec, sizes and checksum of `header`.
  absl::StatusOr<std::string_view> Pack(DdtraceChunkHeader header, std::string_view message);

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::unique_ptr<char[]> chunk_;
  size_t room_ = 0;  // of chunk_
};
// The message in `payload`, which belongs to `header`. Checks checksum and sizes; never makes
// more than header.raw_size bytes.
absl::StatusOr<std::string> UnpackChunk(const DdtraceChunkHeader& header, std::string_view payload);

}  // namespace daydream
