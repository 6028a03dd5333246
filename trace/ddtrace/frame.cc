#include "trace/ddtrace/frame.h"

#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace daydream {
namespace {

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

// The polynomial of RFC 3720 with its bits reversed.
constexpr uint32_t kPolynomial = 0x82f63b78;

using CrcTable = std::array<uint32_t, 256>;

constexpr CrcTable MakeCrcTable() {
  CrcTable table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

uint32_t CrcByTable(uint32_t crc, std::string_view bytes) {
  static constexpr CrcTable kTable = MakeCrcTable();
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t CrcByInstruction(uint32_t crc, std::string_view bytes) {
  uint64_t wide = crc;
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    wide = _mm_crc32_u64(wide, word);
    bytes.remove_prefix(sizeof(word));
  }
  crc = static_cast<uint32_t>(wide);
  for (const char byte : bytes) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(byte));
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~CrcByInstruction(crc, bytes);
#endif
  return ~CrcByTable(crc, bytes);
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

}  // namespace daydream
