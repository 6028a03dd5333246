// Files of rows as text: fields stand between tabs, rows between newlines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace daydream {

// `text` as a field: control characters, tabs and newlines among them, become spaces.
std::string Field(std::string_view text);
// The parts between the separators; one more than there are separators.
std::vector<std::string_view> Split(std::string_view text, char separator);

}  // namespace daydream
