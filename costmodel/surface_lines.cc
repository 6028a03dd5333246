#include "costmodel/surface_lines.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace daydream {

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::vector<std::string_view>> SurfaceLines(std::string_view text) {
  std::vector<std::vector<std::string_view>> lines;
  for (std::string_view line : SplitAt(text, '\n')) {
    if (line.front() != '#') lines.push_back(SplitAt(line, ' '));
  }
  return lines;
}

double SurfaceNumber(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  DD_CHECK(error == std::errc() && end == word.data() + word.size());
  return value;
}

}  // namespace daydream
