// The real traces of other people that lie beside the repository on some machines. They are not
// part of the project; tests that use them skip, saying so, where they are absent.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

namespace daydream {

inline std::filesystem::path RealTraceFolder() {
  return std::filesystem::path(DAYDREAM_DATA_DIR) / "traces";
}

// All PyTorch profiler traces there, as paths relative to the folder, sorted; empty when absent.
inline std::vector<std::string> RealTraces() {
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(RealTraceFolder(), error), end;
  for (; !error && it != end; it.increment(error)) {
    std::string name = std::filesystem::relative(it->path(), RealTraceFolder()).string();
    bool other = name.starts_with("nsys/") || name.starts_with("chakra/");
    if (!other && name.ends_with(".json.gz")) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// For parameterized tests: the traces, or "none" where they are absent, so that a test can skip and
// say so; and the part of a test's name that stands for one.
inline std::vector<std::string> RealTracesOrNone() {
  std::vector<std::string> names = RealTraces();
  if (names.empty()) names.push_back("none");
  return names;
}
inline std::string TestNameOf(std::string trace) {
  for (char& c : trace) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return trace;
}

}  // namespace daydream
