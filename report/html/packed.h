// Numbers packed for the script of the page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace daydream {

// LEB128: seven bits a byte, the lowest first.
void AppendVarint(uint64_t value, std::string& out);

// Small numbers for small differences of either sign: 0, -1, 1, -2 become 0, 1, 2, 3.
constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

// gzip at the level of ISA-L that packs best.
std::string Gzip(std::string_view bytes);

}  // namespace daydream
