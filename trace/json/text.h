// Values inside JSON text: whole numbers, microseconds as exact nanoseconds, and strings repaired
// into text that can be printed.
#pragma once

#include <cstdint>
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
