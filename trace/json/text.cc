#include "trace/json/text.h"

#include <cstring>
#include <limits>

namespace daydream {
namespace {

constexpr int64_t kMaxNs = int64_t{1} << 61;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr uint64_t kTens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Up to sixteen digits; the value of what is there.
[[gnu::always_inline]] inline uint64_t ReadSixteen(const char** p) {
  const JsonDigits first = ReadJsonDigits(*p);
  *p += first.count;
  if (first.count < 8) return first.value;
  const JsonDigits second = ReadJsonDigits(*p);
  *p += second.count;
  return first.value * kTens[second.count] + second.value;
}

// Any decimal, with exponent: a mantissa of up to 30 digits and a power of ten.
const char* ParseSlowly(const char* p, NumberState* state, int64_t* ns) {
  bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  unsigned __int128 mantissa = 0;
  int digits = 0, scale = 3;  // microseconds to nanoseconds
  bool any = false, fraction = false;
  for (;; ++p) {
    if (*p == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!IsDigit(*p)) break;
    any = true;
    if (digits >= 30) {
      scale += fraction ? 0 : 1;
      continue;
    }
    mantissa = mantissa * 10 + static_cast<unsigned>(*p - '0');
    digits += mantissa != 0 ? 1 : 0;
    scale -= fraction ? 1 : 0;
  }
  if (any && (*p == 'e' || *p == 'E')) {
    ++p;
    bool minus = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    int exponent = 0;
    for (; IsDigit(*p); ++p) exponent = exponent < 10000 ? exponent * 10 + (*p - '0') : exponent;
    scale += minus ? -exponent : exponent;
  }
  *state = any ? NumberState::kOk : NumberState::kNotANumber;
  if (mantissa == 0) {
    *ns = 0;
    return p;
  }
  for (; scale > 0 && mantissa <= static_cast<uint64_t>(kMaxNs); --scale) mantissa *= 10;
  if (scale < -40) mantissa = 0;
  for (; scale < -1 && mantissa > 0; ++scale) mantissa /= 10;
  if (scale == -1) mantissa = (mantissa + 5) / 10;
  if (scale > 0 || mantissa > static_cast<uint64_t>(kMaxNs)) {
    *state = NumberState::kTooLarge;
    return p;
  }
  *ns = negative ? -static_cast<int64_t>(mantissa) : static_cast<int64_t>(mantissa);
  return p;
}

}  // namespace

const char* ParseMicroseconds(const char* p, NumberState* state, int64_t* ns) {
  const char* begin = p;
  uint64_t whole = ReadSixteen(&p);
  while (IsDigit(*p) && p - begin < 17) whole = whole * 10 + static_cast<unsigned>(*p++ - '0');
  // 15 digits of microseconds and three of nanoseconds fit without a check; 2^61 ns has 16.
  if (p == begin || p - begin > 15) {
    bool fits = p - begin == 16 && !IsDigit(*p) && whole < static_cast<uint64_t>(kMaxNs) / 1000;
    if (!fits) return ParseSlowly(begin, state, ns);
  }
  uint64_t thousandths = 0;
  if (*p == '.') {
    const JsonDigits behind = ReadJsonDigits(++p);
    if (behind.count <= 3) {
      thousandths = behind.value * kTens[3 - behind.count];
    } else {
      const uint64_t more = kTens[behind.count - 3];
      thousandths = behind.value / more + (p[3] >= '5' ? 1 : 0);
    }
    p += behind.count;
    while (IsDigit(*p)) ++p;
  }
  if (*p == 'e' || *p == 'E') return ParseSlowly(begin, state, ns);
  *ns = static_cast<int64_t>(whole * 1000 + thousandths);
  *state = NumberState::kOk;
  return p;
}

bool ParseUnsigned(const char** p, uint64_t* value) {
  const char* q = *p;
  uint64_t v = 0;
  for (; IsDigit(*q); ++q) {
    auto digit = static_cast<uint64_t>(*q - '0');
    if (v > (std::numeric_limits<uint64_t>::max() - digit) / 10) return false;
    v = v * 10 + digit;
  }
  if (q == *p) return false;
  *p = q;
  *value = v;
  return true;
}

bool ParseInteger(const char** p, int64_t* value) {
  const char* q = *p;
  bool negative = *q == '-';
  if (negative) ++q;
  const char* begin = q;
  uint64_t v = ReadSixteen(&q);
  while (IsDigit(*q) && q - begin < 18) v = v * 10 + static_cast<unsigned>(*q++ - '0');
  if (q == begin) return false;
  if (IsDigit(*q)) {  // 19 digits or more: rare, checked
    q = begin;
    if (!ParseUnsigned(&q, &v) || v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return false;
    }
  }
  *p = q;
  *value = negative ? -static_cast<int64_t>(v) : static_cast<int64_t>(v);
  return true;
}

namespace {

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    *out += c < 0x20 || c == 0x7f ? ' ' : static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xc0 | c >> 6);
    *out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xe0 | c >> 12);
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | c >> 18);
    *out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    *out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

constexpr uint32_t kReplacement = 0xfffd;

// The UTF-8 character at the start of `text` (which is not ASCII) and its length; U+FFFD and 1
// when it is not one.
uint32_t DecodeUtf8(std::string_view text, size_t* length) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  *length = 1;
  size_t n = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < n) return kReplacement;
  uint32_t c = byte(0) & (0x7f >> n);
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kReplacement;
    c = c << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return kReplacement;
  *length = n;
  return c;
}

bool ParseHex4(std::string_view text, uint32_t* value) {
  if (text.size() < 4) return false;
  uint32_t v = 0;
  for (char c : text.substr(0, 4)) {
    uint32_t digit = IsDigit(c)             ? static_cast<uint32_t>(c - '0')
                     : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                            : 16;
    if (digit == 16) return false;
    v = v << 4 | digit;
  }
  *value = v;
  return true;
}

// Handles the escape at the start of `text` and returns its length.
size_t AppendEscape(std::string_view text, std::string* out) {
  if (text.size() < 2) {
    *out += '\\';
    return 1;
  }
  uint32_t c = 0;
  switch (text[1]) {
    case '"':
    case '\\':
    case '/':
      *out += text[1];
      return 2;
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      *out += ' ';
      return 2;
    case 'u':
      break;
    default:
      *out += '\\';
      return 1;
  }
  if (!ParseHex4(text.substr(2), &c)) {
    *out += '\\';
    return 1;
  }
  uint32_t low = 0;
  bool pair = c >= 0xd800 && c < 0xdc00 && text.substr(6, 2) == "\\u" &&
              ParseHex4(text.substr(8), &low) && low >= 0xdc00 && low < 0xe000;
  if (pair) c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  AppendUtf8(c >= 0xd800 && c < 0xe000 ? kReplacement : c, out);
  return pair ? 12 : 6;
}

}  // namespace

void CleanText(std::string_view text, bool unescape, std::string* out) {
  out->clear();
  for (size_t i = 0; i < text.size();) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c == '\\' && unescape) {
      i += AppendEscape(text.substr(i), out);
    } else if (c < 0x80) {
      AppendUtf8(c, out);
      ++i;
    } else {
      size_t length = 1;
      AppendUtf8(DecodeUtf8(text.substr(i), &length), out);
      i += length;
    }
  }
}

bool IsCleanText(std::string_view text) {
  for (char c : text) {
    if (static_cast<signed char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  }
  return true;
}

}  // namespace daydream
