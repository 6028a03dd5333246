// A file as it is.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace daydream {

// Empty where there is no file.
inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace daydream
