#include "trace/json/reader.h"

#include <cstddef>

namespace daydream {

const char* SkipJsonContainer(const char* p, const char* end) {
  // No single argument of a real event is longer, but for call stacks, which are strings.
  constexpr ptrdiff_t kSuspiciousBytes = 4096;
  if (p[1] == ']' || p[1] == '}') return p + 2;
  const char* behind = JsonSkipper().Skip(p, end);
  if (behind == nullptr || behind - p < kSuspiciousBytes) return behind;
  std::string_view text(p, static_cast<size_t>(behind - p));
  return text.find("\"ph\":") == std::string_view::npos ? behind : nullptr;
}

const char* ReadLongInteger(const char* p, const char* end, int64_t* value) {
  const int quoted = *p == '"' ? 1 : 0;
  const char* q = p + quoted;
  int64_t v = 0;
  if (ParseInteger(&q, &v) && (quoted == 1 ? *q == '"' : EndsJsonScalar(*q))) {
    *value = v;
    return q + quoted;
  }
  return SkipJsonValue(p, end);
}

}  // namespace daydream
