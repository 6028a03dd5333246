// The payloads of a .ddtrace file's chunks: packing and unpacking them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "trace/ddtrace/frame.h"

namespace daydream {

// What stands in a file where a row refers to nothing.
inline constexpr uint32_t kNone = Id<void>::kNoneValue;

// Header and payload of one chunk, ready to be written. zstd, level 3. Fails when `message` is
// larger than kDdtraceMaxRaw. Fills codec, sizes and checksum of `header`.
absl::StatusOr<std::string> PackChunk(DdtraceChunkHeader header, std::string_view message);
// The message in `payload`, which belongs to `header`. Checks checksum and sizes; never makes
// more than header.raw_size bytes.
absl::StatusOr<std::string> UnpackChunk(const DdtraceChunkHeader& header, std::string_view payload);

}  // namespace daydream
