// The files of this repository as text, for the tests that check them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace daydream {

struct SourceFile {
  std::string path;  // from the repository's root: "trace/trace.h"
  std::vector<std::string> lines;

  std::string folder() const { return path.substr(0, path.find('/')); }
  bool IsHeader() const { return path.ends_with(".h"); }
};

inline std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// All files below the root with one of the endings, sorted; build output and hidden folders left
// out.
inline std::vector<SourceFile> SourceFiles(std::vector<std::string> endings) {
  namespace fs = std::filesystem;
  std::vector<SourceFile> files;
  const fs::path root(DAYDREAM_SOURCE_DIR);
  for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
    std::string name = it->path().filename().string();
    if (it->is_directory() && (name[0] == '.' || name.starts_with("build"))) {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file()) continue;
    bool wanted = std::any_of(endings.begin(), endings.end(),
                              [&](const std::string& e) { return name.ends_with(e); });
    if (!wanted) continue;
    files.push_back(
        {fs::relative(it->path(), root).generic_string(), SplitLines(ReadText(it->path()))});
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace daydream
