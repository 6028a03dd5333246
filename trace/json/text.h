// Values inside JSON text: whole numbers, microseconds as exact nanoseconds, and strings repaired
// into text that can be printed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace daydream {

enum class NumberState : uint8_t {
  kMissing,
  kOk,
  kNotANumber,  // NaN, N/A, null, text
  kTooLarge,    // beyond +-2^61 ns
};

// All that read numbers may look at eight characters from where one ends: JSON text has them behind
// it (kJsonPadding), others bring them.

// The digits that eight characters begin with.
struct JsonDigits {
  uint32_t value = 0;
  int count = 0;
};

// All at once, by pairs, fours and eights.
[[gnu::always_inline]] inline JsonDigits ReadJsonDigits(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  v ^= 0x3030303030303030;
  // The first character that is no digit sets its highest bit; behind it they say nothing.
  const uint64_t other = ((v + 0x7676767676767676) | v) & 0x8080808080808080;
  const int count = other == 0 ? 8 : std::countr_zero(other) / 8;
  if (count == 0) return {};
  v <<= 64 - 8 * count;  // as if there were zeros before them
  v = (v & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
  v = (v & 0x00ff00ff00ff00ff) * 6553601 >> 16;
  return {static_cast<uint32_t>((v & 0x0000ffff0000ffff) * 42949672960001 >> 32), count};
}

// Past the number at `p`, which is in microseconds; `*ns` is the nearest whole nanosecond, exact:
// no double is involved. On a non-number nothing is consumed.
const char* ParseMicroseconds(const char* p, NumberState* state, int64_t* ns);

// Past the whole number at `p`; false without moving when there is none or it overflows. A
// fraction or exponent is not part of it.
bool ParseInteger(const char** p, int64_t* value);
// The same for unsigned 64 bits: addresses and graph node ids.
bool ParseUnsigned(const char** p, uint64_t* value);

// `text` with invalid UTF-8 as U+FFFD and control characters as spaces, into `*out`. With
// `unescape`, escapes become what they stand for; unknown ones (Windows paths) stay as they are.
void CleanText(std::string_view text, bool unescape, std::string* out);
// True when CleanText() would not change `text`.
bool IsCleanText(std::string_view text);

}  // namespace daydream
