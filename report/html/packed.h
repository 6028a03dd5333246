// Numbers packed for the script of the page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace daydream {

// LEB128: seven bits a byte, the lowest first.
void AppendVarint(uint64_t value, std::string& out);

// gzip at the level of ISA-L that packs best.
std::string Gzip(std::string_view bytes);

}  // namespace daydream
