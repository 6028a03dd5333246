// What a command says of work that takes longer than a second.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace daydream {

// What is counted: bytes of files, or pieces of work.
enum class Counted : uint8_t { kBytes, kPieces };

// "reading big.json.gz 45 %, 120.0 MB a second, 3 s left": `done` of `total`, of which `before`
// were done when what is told began, `seconds` ago. Rate and time left only where both are known:
// after half a second.
std::string ProgressText(std::string_view what, Counted counted, uint64_t done, uint64_t total,
                         uint64_t before, double seconds);

}  // namespace daydream
