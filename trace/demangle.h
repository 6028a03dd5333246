// C++ names as people read them.
#pragma once

#include <string>
#include <string_view>

namespace daydream {

// "at::native::fill(int)" for "_ZN2at6native4fillEi". As in the PyTorch profiler, names that are
// not mangled, or longer than 1024 characters, stay as they are (libkineto's limit, Demangle.cpp).
std::string Demangle(std::string_view name, size_t longest = 1024);

}  // namespace daydream
