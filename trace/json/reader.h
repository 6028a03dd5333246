// Pulls keys and values out of JSON text between two pointers. Nothing is copied. All functions
// read up to kJsonPadding bytes past `end`, and return nullptr when the value does not end there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/json/scan.h"
#include "trace/json/text.h"

namespace daydream {

// A string inside the text. `plain` = it can be taken as it stands.
struct JsonString {
  std::string_view text;
  bool plain = true;
  bool present() const { return text.data() != nullptr; }
};

// What may follow a number or a word, by character.
inline constexpr std::array<bool, 256> kEndsJsonScalar = [] {
  std::array<bool, 256> ends{};
  for (size_t c = 0; c <= ' '; ++c) ends[c] = true;
  ends[','] = ends['}'] = ends[']'] = true;
  return ends;
}();
inline bool EndsJsonScalar(char c) { return kEndsJsonScalar[static_cast<unsigned char>(c)]; }

// Behind the array or object at `p`. Also nullptr when it is long and holds events: then a stray
// quote before it made it look so.
const char* SkipJsonContainer(const char* p, const char* end);

// Behind the value at `p`.
inline const char* SkipJsonValue(const char* p, const char* end) {
  if (*p == '"') {
    bool plain = true;
    const char* close = FindStringEnd(p + 1, end, &plain);
    return close == nullptr ? nullptr : close + 1;
  }
  if (*p == '{' || *p == '[') return SkipJsonContainer(p, end);
  p = FindScalarEnd(p, end);
  return p < end ? p : nullptr;
}

// Behind the value at `p`, which goes to `*value` when it is a string.
[[gnu::always_inline]] inline const char* ReadJsonString(const char* p, const char* end,
                                                         JsonString* value) {
  if (*p != '"') return SkipJsonValue(p, end);
  bool plain = true;
  const char* close = FindStringEnd(p + 1, end, &plain);
  if (close == nullptr) return nullptr;
  *value = {{p + 1, static_cast<size_t>(close - p - 1)}, plain};
  return close + 1;
}

// Behind a whole number of up to eight digits, as most numbers are; nullptr where the value at `p`
// is something else.
[[gnu::always_inline]] inline const char* ReadShortInteger(const char* p, int64_t* value) {
  const JsonDigits digits = ReadJsonDigits(p);
  if (digits.count == 0 || !EndsJsonScalar(p[digits.count])) return nullptr;
  *value = digits.value;
  return p + digits.count;
}

// ReadJsonInteger() of all that is no short one.
const char* ReadLongInteger(const char* p, const char* end, int64_t* value);

// Behind the value at `p`, which goes to `*value` when it is a whole number or a string of one.
[[gnu::always_inline]] inline const char* ReadJsonInteger(const char* p, const char* end,
                                                          int64_t* value) {
  const char* behind = ReadShortInteger(p, value);
  return behind != nullptr ? behind : ReadLongInteger(p, end, value);
}

// Walks the members of the object {"key": value, ...}. Commas too many are fine.
class JsonObjectReader {
 public:
  // `p` is at the opening brace.
  JsonObjectReader(const char* p, const char* end) : p_(p), end_(end) {}

  // Moves to the next key. False at the end of the object and when the text is broken.
  [[gnu::always_inline]] bool NextKey(std::string_view* key) {
    bool separated = first_;
    if (first_) ++p_;
    first_ = false;
    p_ = SkipBlanks(p_);
    while (*p_ == ',') {
      separated = true;
      p_ = SkipBlanks(p_ + 1);
    }
    if (*p_ == '}') {
      ++p_;
      closed_ = true;
      return false;
    }
    if (*p_ != '"' || !separated) return false;
    const char* close = FindKeyEnd(p_ + 1, end_);
    if (close == nullptr) {
      p_ = end_;
      return false;
    }
    *key = {p_ + 1, static_cast<size_t>(close - p_ - 1)};
    p_ = SkipBlanks(close + 1);
    if (*p_ != ':') return false;
    p_ = SkipBlanks(p_ + 1);
    return !EndsJsonScalar(*p_);
  }
  // The value of the key just returned. The reader goes on behind it after Resume().
  const char* value() const { return p_; }
  // ... and behind what somebody else has read of it.
  void Resume(const char* behind) { p_ = behind, first_ = false; }
  // Where somebody else has read its closing brace.
  void Close(const char* behind) { p_ = behind, closed_ = true; }
  // True when the object ended as it should; position() is then behind its brace.
  bool closed() const { return closed_; }
  const char* position() const { return p_; }

 private:
  const char* p_;
  const char* end_;
  bool first_ = true;
  bool closed_ = false;
};

}  // namespace daydream
