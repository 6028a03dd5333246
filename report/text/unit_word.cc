#include "report/text/unit_word.h"

#include <algorithm>
#include <iterator>

namespace daydream {

bool IsUnit(std::string_view word) {
  while (!word.empty() && std::string_view(".,;:)").find(word.back()) != word.npos) {
    word.remove_suffix(1);
  }
  constexpr std::string_view kUnits[] = {"ns", "us", "ms", "s", "%", "MB", "GB", "GB/s"};
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

}  // namespace daydream
