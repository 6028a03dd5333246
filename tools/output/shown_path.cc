#include "tools/output/shown_path.h"

#include <algorithm>

namespace daydream {

std::string WithoutFolders(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.size() > 1 ? path.substr(path.rfind('/') + 1) : path);
}

std::string SpecWithoutFolders(std::string_view spec) {
  constexpr std::string_view kBetween = ",()= ", kEnd = ".yaml";
  std::string out;
  while (!spec.empty()) {
    const size_t word = std::min(spec.find_first_of(kBetween), spec.size());
    const std::string_view text = spec.substr(0, word);
    out += text.ends_with(kEnd) ? WithoutFolders(text) : std::string(text);
    if (word < spec.size()) out += spec[word];
    spec.remove_prefix(std::min(word + 1, spec.size()));
  }
  return out;
}

}  // namespace daydream
