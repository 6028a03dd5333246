#include "tools/input/json_path.h"

#include <charconv>

#include <fmt/format.h>

#include "trace/json/reader.h"

namespace daydream {
namespace {

// Behind the opening bracket of an array: its `place`-th value, or nullptr.
const char* ValueInArray(const char* p, const char* end, size_t place) {
  p = SkipBlanks(p + 1);
  for (size_t i = 0; p != nullptr && p < end && *p != ']'; ++i) {
    if (i == place) return p;
    p = SkipJsonValue(p, end);
    if (p == nullptr) return nullptr;
    p = SkipBlanks(p);
    if (*p == ',') p = SkipBlanks(p + 1);
  }
  return nullptr;
}

const char* ValueInObject(const char* p, const char* end, std::string_view wanted) {
  JsonObjectReader reader(p, end);
  for (std::string_view key; reader.NextKey(&key);) {
    if (key == wanted) return reader.value();
    const char* behind = SkipJsonValue(reader.value(), end);
    if (behind == nullptr) return nullptr;
    reader.Resume(behind);
  }
  return nullptr;
}

const char* Descend(const char* p, const char* end, std::string_view key) {
  if (*p == '{') return ValueInObject(p, end, key);
  if (*p != '[') return nullptr;
  size_t place = 0;
  const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), place);
  const bool whole = error == std::errc() && stop == key.data() + key.size();
  return whole ? ValueInArray(p, end, place) : nullptr;
}

// The value at `path` of text that has kJsonPadding behind its end, or nullptr.
const char* Find(const std::string& text, const char* end, std::string_view path) {
  const char* p = SkipBlanks(text.data());
  while (p != nullptr && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    p = Descend(p, end, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return p;
}

// The reader looks past the end.
std::string Padded(std::string_view json) {
  std::string text(json);
  text.append(kJsonPadding, '\0');
  return text;
}

}  // namespace

absl::StatusOr<std::string> AtJsonPath(std::string_view json, std::string_view path) {
  const std::string text = Padded(json);
  const char* end = text.data() + json.size();
  const char* p = Find(text, end, path);
  if (p == nullptr || *p == '{' || *p == '[') {
    return absl::InternalError(fmt::format("no value at {}", path));
  }
  const char* behind = SkipJsonValue(p, end);
  if (behind == nullptr) return absl::InternalError(fmt::format("no value at {}", path));
  if (*p != '"') return std::string(p, behind);
  std::string value;
  CleanText(std::string_view(p + 1, static_cast<size_t>(behind - p) - 2), true, &value);
  return value;
}

std::vector<std::string> ElementsAtJsonPath(std::string_view json, std::string_view path,
                                            size_t most) {
  std::vector<std::string> out;
  const std::string text = Padded(json);
  const char* end = text.data() + json.size();
  const char* p = Find(text, end, path);
  if (p == nullptr || *p != '[') return out;
  p = SkipBlanks(p + 1);
  while (p < end && *p != ']' && out.size() < most) {
    const char* behind = SkipJsonValue(p, end);
    if (behind == nullptr || behind <= p) break;
    out.emplace_back(p, behind);
    p = SkipBlanks(behind);
    if (*p == ',') p = SkipBlanks(p + 1);
  }
  return out;
}

}  // namespace daydream
