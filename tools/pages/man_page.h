// The manual page daydream(1), made of what the commands say about themselves.
#pragma once

#include <string>

namespace daydream {

// As input of roff with the man macros.
std::string ManPage();

}  // namespace daydream
