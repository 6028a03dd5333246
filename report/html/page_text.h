// The template of the page with its style and scripts in it, as CMake put them together.
#pragma once

#include <string_view>

namespace daydream {

// Has "<!-- title -->" where the title goes, and then "<!-- data -->".
std::string_view PageText();

}  // namespace daydream
