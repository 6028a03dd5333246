// The frame of a .ddtrace file (docs/formats.md): a magic, then chunks, each with a checked header
// and a compressed protobuf message, then an index and a trailer. All numbers little endian.
// Needs nothing but the standard library, so that a recorder can use it inside of any program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace daydream {

inline constexpr std::string_view kDdtraceMagic = "DDTRACE1";
inline constexpr std::string_view kDdtraceChunkMagic = "DDCK";
inline constexpr std::string_view kDdtraceTrailerMagic = "DDEN";
inline constexpr size_t kDdtraceHeaderSize = 44;
inline constexpr size_t kDdtraceTrailerSize = 16;
inline constexpr int kDdtraceZstdLevel = 3;
// No payload is larger than this when unpacked, so a reader needs no more memory for a chunk,
// whatever its header claims. Writers stay far below it (64 Ki rows, about 1 MiB).
inline constexpr uint32_t kDdtraceMaxRaw = 8u << 20;
// Stored bytes of such a payload: zstd adds less than 1/128 to what it cannot compress.
inline constexpr uint32_t kDdtraceMaxStored = kDdtraceMaxRaw + (kDdtraceMaxRaw >> 7);

// Numbers as stored. Readers skip chunks of other types.
enum class DdtraceChunkType : uint8_t { kHeader = 1, kEvents = 2, kIndex = 3 };
enum class DdtraceCodec : uint8_t { kStored = 0, kZstd = 1 };

// Bits of DdtraceChunkHeader::flags.
inline constexpr uint16_t kDdtraceHasDefinitions = 1;
// A reader that does not know the chunk's type loses nothing that a prediction needs.
inline constexpr uint16_t kDdtraceMayIgnore = 2;

struct DdtraceChunkHeader {
  uint8_t type = 0;
  uint8_t codec = 0;
  uint16_t flags = 0;
  uint32_t sequence = 0;  // counts the chunks of the file from 0
  uint32_t raw_size = 0;
  uint32_t stored_size = 0;
  int64_t first_ns = 0;  // earliest start and latest end of the rows
  int64_t last_ns = 0;
  uint32_t payload_crc = 0;
  friend bool operator==(const DdtraceChunkHeader&, const DdtraceChunkHeader&) = default;
};

// CRC-32C (Castagnoli), as in RFC 3720 appendix B.4: of "123456789" it is 0xE3069283.
uint32_t Crc32c(std::string_view bytes);

std::array<char, kDdtraceHeaderSize> EncodeChunkHeader(const DdtraceChunkHeader& header);
// The header at the start of `bytes`, if its magic, checksum and sizes are right.
std::optional<DdtraceChunkHeader> DecodeChunkHeader(std::string_view bytes);

std::array<char, kDdtraceTrailerSize> EncodeTrailer(uint64_t index_offset);
// The offset of the index chunk, if the last 16 bytes of `file` are a trailer.
std::optional<uint64_t> DecodeTrailer(std::string_view file);

}  // namespace daydream
