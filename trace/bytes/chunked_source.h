// What all byte sources share: peeking, the limit on uncompressed bytes, and the packed formats
// stacked on a plain source.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trace/bytes/source.h"

namespace daydream {

// Text handed out at a time. A quarter of a megabyte stays in the second-level cache from the
// inflater to the parser.
inline constexpr size_t kChunkBytes = size_t{256} << 10;

class ChunkedSource : public ByteSource {
 public:
  absl::StatusOr<std::string_view> Next() final;
  absl::StatusOr<std::string_view> Peek() final;

 protected:
  ChunkedSource(std::string name, int64_t limit);

  // The next bytes, valid until the next call; empty = end. At least 4 KiB unless at the end.
  virtual absl::StatusOr<std::string_view> Produce() = 0;

 private:
  int64_t limit_;
  int64_t handed_out_ = 0;
  std::optional<absl::StatusOr<std::string_view>> held_;  // peeked at, not yet handed out
};

// Unpack what `packed` delivers. Several members or frames in a row are one stream.
std::unique_ptr<ByteSource> MakeGzipSource(std::unique_ptr<ByteSource> packed, int64_t limit);
std::unique_ptr<ByteSource> MakeZstdSource(std::unique_ptr<ByteSource> packed, int64_t limit);

// E0205: the packed data ends early. E0206: it is damaged. E0207: more than `limit` bytes, or
// unpacked to an absurd multiple of what was read.
absl::Status PackedDataEndsEarly(const std::string& name);
absl::Status PackedDataDamaged(const std::string& name, std::string why);
absl::Status TooManyBytes(const std::string& name, std::string why);

// Fails when `out` bytes from `in` packed ones can only be a decompression bomb.
absl::Status CheckExpansion(const std::string& name, int64_t in, int64_t out);

}  // namespace daydream
