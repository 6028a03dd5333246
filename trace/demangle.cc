#include "trace/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace daydream {

std::string Demangle(std::string_view name, size_t longest) {
  std::string text(name);
  if (!name.starts_with("_Z") || name.size() > longest) return text;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
  return readable == nullptr || status != 0 ? text : std::string(readable.get());
}

}  // namespace daydream
