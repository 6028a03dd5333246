// Numbers of seven bits a byte, lowest first (protobuf's encoding guide, "base 128 varints").
#pragma once

#include <cstdint>
#include <string_view>

namespace daydream {

// Takes a number from the front of `bytes`; false when they end in it or it has more than 64 bits.
inline bool ReadVarint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace daydream
