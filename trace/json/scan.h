// Steps through JSON text between two pointers, 16 or 64 bytes at a time. All functions may read
// up to kJsonPadding bytes past `end`; the caller provides them. Nothing here validates: numbers
// such as N/A, raw newlines in strings and Windows paths pass, because profilers write them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace daydream {

inline constexpr size_t kJsonPadding = 64;

#ifdef __SSE2__
struct JsonBlock {
  __m128i v;
  explicit JsonBlock(const char* p) : v(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))) {}
  uint32_t Equal(char c) const { return Mask(_mm_cmpeq_epi8(v, _mm_set1_epi8(c))); }
  uint32_t Equal2(char a, char b) const {
    return Mask(
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(a)), _mm_cmpeq_epi8(v, _mm_set1_epi8(b))));
  }
  // Places where 16 bytes at `q` are the same.
  uint32_t EqualTo(const char* q) const { return Mask(_mm_cmpeq_epi8(v, JsonBlock(q).v)); }
  // '[' or '{'; ']' or '}': each pair differs in one bit.
  uint32_t EqualFolded(char c) const {
    return Mask(_mm_cmpeq_epi8(_mm_or_si128(v, _mm_set1_epi8(0x20)), _mm_set1_epi8(c)));
  }
  // Brackets of both kinds, backslashes and bars.
  uint32_t Structure() const {
    __m128i folded = _mm_or_si128(v, _mm_set1_epi8(0x20));
    __m128i within = _mm_min_epu8(_mm_max_epu8(folded, _mm_set1_epi8('{')), _mm_set1_epi8('}'));
    return Mask(_mm_cmpeq_epi8(folded, within));
  }
  // Control characters and bytes of characters beyond ASCII.
  uint32_t NotPlain() const { return Mask(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20))); }
  // Anything but blanks; zero bytes count as such, so that padding stops a walk.
  uint32_t NotBlank() const {
    __m128i above_zero = _mm_cmpgt_epi8(v, _mm_setzero_si128());
    __m128i below_letter = _mm_cmplt_epi8(v, _mm_set1_epi8(0x21));
    return 0xffff & ~Mask(_mm_and_si128(above_zero, below_letter));
  }
  // What may follow a number or a word: comma, closing bracket, blank, end of text.
  uint32_t EndsScalar() const {
    __m128i folded = _mm_or_si128(v, _mm_set1_epi8(0x20));
    __m128i bracket = _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'));
    __m128i comma = _mm_cmpeq_epi8(v, _mm_set1_epi8(','));
    __m128i blank = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x20)), v);
    return Mask(_mm_or_si128(_mm_or_si128(bracket, comma), blank));
  }

 private:
  static uint32_t Mask(__m128i m) { return static_cast<uint32_t>(_mm_movemask_epi8(m)); }
};
#else
struct JsonBlock {
  const char* p;
  explicit JsonBlock(const char* from) : p(from) {}
  template <class F>
  uint32_t Mask(F f) const {
    uint32_t mask = 0;
    for (int i = 0; i < 16; ++i) mask |= static_cast<uint32_t>(f(p[i])) << i;
    return mask;
  }
  uint32_t Equal(char c) const {
    return Mask([c](char x) { return x == c; });
  }
  uint32_t Equal2(char a, char b) const {
    return Mask([a, b](char x) { return x == a || x == b; });
  }
  uint32_t EqualTo(const char* q) const {
    uint32_t mask = 0;
    for (int i = 0; i < 16; ++i) mask |= static_cast<uint32_t>(p[i] == q[i]) << i;
    return mask;
  }
  uint32_t EqualFolded(char c) const {
    return Mask([c](char x) { return static_cast<char>(x | 0x20) == c; });
  }
  uint32_t Structure() const {
    return Mask([](char x) { return (x | 0x20) >= '{' && (x | 0x20) <= '}'; });
  }
  uint32_t NotPlain() const {
    return Mask([](char x) { return static_cast<signed char>(x) < 0x20; });
  }
  uint32_t NotBlank() const {
    return Mask([](char x) { return static_cast<unsigned char>(x - 1) >= 0x20; });
  }
  uint32_t EndsScalar() const {
    return Mask([](char x) {
      return x == ',' || (x | 0x20) == '}' || static_cast<unsigned char>(x) <= 0x20;
    });
  }
};
#endif

// Past blanks. A zero byte is not a blank, so that the padding stops the walk.
inline const char* SkipBlanks(const char* p) {
  auto blank = [](char c) { return static_cast<unsigned char>(c - 1) < ' '; };
  if (!blank(p[0])) return p;
  if (!blank(p[1])) return p + 1;
  for (;; p += 16) {
    uint32_t other = JsonBlock(p).NotBlank();
    if (other != 0) return p + std::countr_zero(other);
  }
}

// The end of the number or word at `p`.
inline const char* FindScalarEnd(const char* p, const char* end) {
  for (; p < end; p += 16) {
    uint32_t stop = JsonBlock(p).EndsScalar();
    if (stop != 0) return p + std::countr_zero(stop);
  }
  return p;
}

// The closing quote of the string whose first character is at `p`, or nullptr when it is not
// before `end`. `*plain` becomes false when the text holds escapes, control characters or
// characters beyond ASCII.
inline const char* FindStringEnd(const char* p, const char* end, bool* plain) {
  while (p < end) {
    JsonBlock block(p);
    uint32_t stop = block.Equal2('"', '\\');
    uint32_t special = block.NotPlain();
    if (stop == 0) {
      if (special != 0) *plain = false;
      p += 16;
      continue;
    }
    int i = std::countr_zero(stop);
    if ((special & ((1u << i) - 1)) != 0) *plain = false;
    p += i;
    if (*p == '"') return p < end ? p : nullptr;
    *plain = false;
    p += 2;
  }
  return nullptr;
}

// FindStringEnd() for keys, which rarely have more than fifteen characters.
inline const char* FindKeyEnd(const char* p, const char* end) {
  JsonBlock block(p);
  uint32_t stop = block.Equal2('"', '\\');
  if (stop != 0) {
    const char* q = p + std::countr_zero(stop);
    if (*q == '"') return q < end ? q : nullptr;
  }
  bool plain = true;
  return FindStringEnd(p, end, &plain);
}

// Past the next array or object, however deep, in pieces if need be. Brackets are counted but not
// matched by shape.
class JsonSkipper {
 public:
  // Reads from `p`; the first call starts at the opening bracket. Returns one past the closing
  // bracket, or nullptr when all of [p, end) belongs to the value.
  const char* Skip(const char* p, const char* end) {
    for (; p < end; p += 64) {
      uint64_t quotes = 0, slashes = 0, opens = 0, closes = 0;
      for (int i = 0; i < 4; ++i) {
        JsonBlock block(p + 16 * i);
        quotes |= uint64_t{block.Equal('"')} << (16 * i);
        slashes |= uint64_t{block.Equal('\\')} << (16 * i);
        opens |= uint64_t{block.EqualFolded('{')} << (16 * i);
        closes |= uint64_t{block.EqualFolded('}')} << (16 * i);
      }
      int size = static_cast<int>(std::min<ptrdiff_t>(end - p, 64));
      uint64_t valid = size == 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1;
      quotes &= valid & ~Escaped(slashes & valid, size);
      uint64_t inside = PrefixXor(quotes) ^ in_string_;
      in_string_ = static_cast<uint64_t>(static_cast<int64_t>(inside) >> 63);
      opens &= valid & ~inside;
      closes &= valid & ~inside;
      if ((opens | closes) == 0) continue;
      for (uint64_t both = opens | closes; both != 0; both &= both - 1) {
        int i = std::countr_zero(both);
        depth_ += ((opens >> i) & 1) != 0 ? 1 : -1;
        if (depth_ <= 0) return p + i + 1;
      }
    }
    return nullptr;
  }

 private:
  // Bit i = xor of bits 0..i: set from each opening quote to just before its closing quote.
  static uint64_t PrefixXor(uint64_t m) {
    for (int shift = 1; shift < 64; shift *= 2) m ^= m << shift;
    return m;
  }
  // Characters that a backslash takes away the meaning of.
  uint64_t Escaped(uint64_t slashes, int size) {
    if (slashes == 0) {
      uint64_t first = escape_next_;
      escape_next_ = 0;
      return first;
    }
    uint64_t escaped = 0;
    bool next = escape_next_ != 0;
    for (int i = 0; i < size; ++i) {
      if (next) {
        escaped |= uint64_t{1} << i;
        next = false;
      } else {
        next = ((slashes >> i) & 1) != 0;
      }
    }
    escape_next_ = next ? 1 : 0;
    return escaped;
  }

  int64_t depth_ = 0;
  uint64_t in_string_ = 0;    // all ones inside a string
  uint64_t escape_next_ = 0;  // 1 when the last character was a backslash in force
};

}  // namespace daydream
