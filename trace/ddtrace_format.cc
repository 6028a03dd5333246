#include "trace/ddtrace_format.h"

#include <isa-l/crc.h>
#include <zstd.h>

#include <cstring>

namespace daydream {
namespace {

constexpr int kZstdLevel = 3;
// A zstd block makes at most 128 KiB and takes at least 4 bytes (RFC 8878, section 3.1.1.2), so a
// header that claims more than this is lying and no memory is taken for it.
constexpr uint64_t kMaxRatio = (128 << 10) / 4;

template <class T>
void Put(char*& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    *out++ = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  }
}

template <class T>
T Get(const char*& in) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= uint64_t{static_cast<unsigned char>(*in++)} << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  // The library takes an int for the length.
  constexpr size_t kPiece = size_t{1} << 30;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data()));
    crc = crc32_iscsi(data, static_cast<int>(piece.size()), crc);
    bytes.remove_prefix(piece.size());
  }
  return ~crc;
}

std::array<char, kDdtraceHeaderSize> EncodeChunkHeader(const DdtraceChunkHeader& header) {
  std::array<char, kDdtraceHeaderSize> bytes;
  char* out = bytes.data();
  std::memcpy(out, kDdtraceChunkMagic.data(), kDdtraceChunkMagic.size());
  out += kDdtraceChunkMagic.size();
  Put(out, header.type);
  Put(out, header.codec);
  Put(out, header.flags);
  Put(out, header.sequence);
  Put(out, header.raw_size);
  Put(out, header.stored_size);
  Put(out, header.first_ns);
  Put(out, header.last_ns);
  Put(out, header.payload_crc);
  Put(out, Crc32c({bytes.data(), kDdtraceHeaderSize - 4}));
  return bytes;
}

std::optional<DdtraceChunkHeader> DecodeChunkHeader(std::string_view bytes) {
  if (bytes.size() < kDdtraceHeaderSize || !bytes.starts_with(kDdtraceChunkMagic)) {
    return std::nullopt;
  }
  const char* in = bytes.data() + kDdtraceChunkMagic.size();
  DdtraceChunkHeader header;
  header.type = Get<uint8_t>(in);
  header.codec = Get<uint8_t>(in);
  header.flags = Get<uint16_t>(in);
  header.sequence = Get<uint32_t>(in);
  header.raw_size = Get<uint32_t>(in);
  header.stored_size = Get<uint32_t>(in);
  header.first_ns = Get<int64_t>(in);
  header.last_ns = Get<int64_t>(in);
  header.payload_crc = Get<uint32_t>(in);
  const uint32_t crc = Get<uint32_t>(in);
  if (crc != Crc32c(bytes.substr(0, kDdtraceHeaderSize - 4))) return std::nullopt;
  if (header.raw_size > kDdtraceMaxRaw || header.stored_size > kDdtraceMaxStored) {
    return std::nullopt;
  }
  return header;
}

std::array<char, kDdtraceTrailerSize> EncodeTrailer(uint64_t index_offset) {
  std::array<char, kDdtraceTrailerSize> bytes;
  char* out = bytes.data();
  Put(out, index_offset);
  Put(out, Crc32c({bytes.data(), 8}));
  std::memcpy(out, kDdtraceTrailerMagic.data(), kDdtraceTrailerMagic.size());
  return bytes;
}

std::optional<uint64_t> DecodeTrailer(std::string_view file) {
  if (file.size() < kDdtraceTrailerSize) return std::nullopt;
  const std::string_view bytes = file.substr(file.size() - kDdtraceTrailerSize);
  if (!bytes.ends_with(kDdtraceTrailerMagic)) return std::nullopt;
  const char* in = bytes.data();
  const auto offset = Get<uint64_t>(in);
  if (Get<uint32_t>(in) != Crc32c(bytes.substr(0, 8))) return std::nullopt;
  return offset;
}

absl::StatusOr<std::string> PackChunk(DdtraceChunkHeader header, std::string_view message) {
  if (message.size() > kDdtraceMaxRaw) {
    return InvalidArgument("one part of this trace needs {} bytes, more than a .ddtrace chunk "
                           "may hold ({})", message.size(), kDdtraceMaxRaw);
  }
  std::string chunk(kDdtraceHeaderSize + ZSTD_compressBound(message.size()), '\0');
  const size_t stored = ZSTD_compress(chunk.data() + kDdtraceHeaderSize,
                                      chunk.size() - kDdtraceHeaderSize, message.data(),
                                      message.size(), kZstdLevel);
  if (ZSTD_isError(stored)) return DataLoss("zstd: {}", ZSTD_getErrorName(stored));
  chunk.resize(kDdtraceHeaderSize + stored);
  header.codec = static_cast<uint8_t>(DdtraceCodec::kZstd);
  header.raw_size = static_cast<uint32_t>(message.size());
  header.stored_size = static_cast<uint32_t>(stored);
  header.payload_crc = Crc32c(std::string_view(chunk).substr(kDdtraceHeaderSize));
  const auto encoded = EncodeChunkHeader(header);
  std::memcpy(chunk.data(), encoded.data(), encoded.size());
  return chunk;
}

absl::StatusOr<std::string> UnpackChunk(const DdtraceChunkHeader& header,
                                        std::string_view payload) {
  if (payload.size() != header.stored_size || Crc32c(payload) != header.payload_crc) {
    return DataLoss("the checksum does not fit");
  }
  if (header.raw_size > kDdtraceMaxRaw) return DataLoss("the chunk is too large");
  if (header.codec == static_cast<uint8_t>(DdtraceCodec::kStored)) {
    if (header.raw_size != header.stored_size) return DataLoss("the two sizes differ");
    return std::string(payload);
  }
  if (header.codec != static_cast<uint8_t>(DdtraceCodec::kZstd)) {
    return DataLoss("codec {} is not known", header.codec);
  }
  // A frame that states another size than the header is refused before any memory is taken.
  const unsigned long long stated = ZSTD_getFrameContentSize(payload.data(), payload.size());
  if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != header.raw_size) {
    return DataLoss("the compressed size does not fit");
  }
  if (header.raw_size > header.stored_size * kMaxRatio) return DataLoss("the size is impossible");
  std::string message(header.raw_size, '\0');
  const size_t made =
      ZSTD_decompress(message.data(), message.size(), payload.data(), payload.size());
  if (ZSTD_isError(made)) return DataLoss("zstd: {}", ZSTD_getErrorName(made));
  if (made != header.raw_size) return DataLoss("the unpacked size does not fit");
  return message;
}

}  // namespace daydream
