// Words of a text that belong to the number before them.
#pragma once

#include <string_view>

namespace daydream {

// Whether a word is a unit, from whose number no line is broken: "ms", "%)".
bool IsUnit(std::string_view word);

}  // namespace daydream
