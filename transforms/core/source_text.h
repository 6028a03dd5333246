// The text of a file that people write, and places in it: errors show the line with a caret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

// A place in a text: line and column count from 1, in bytes.
struct Place {
  size_t line = 1, column = 1;
  friend bool operator==(Place, Place) = default;
};

class SourceText {
 public:
  SourceText(std::string path, std::string_view text);

  const std::string& path() const { return path_; }
  std::string_view text() const { return text_; }
  size_t lines() const { return line_begin_.size() - (text_.ends_with('\n') ? 1 : 0); }
  // The line without its end; empty for lines that do not exist.
  std::string_view Line(size_t line) const;
  // The bytes from `place` to the end of its line.
  std::string_view From(Place place) const;
  // "mine.yaml:14", without folders, for the causes of a report.
  std::string Tag(Place place) const;

  // An error at [place, place + length): the Diagnostic's `where` is "PATH:LINE:COLUMN", the line
  // and a caret line that ends in `hint`.
  absl::Status Error(absl::StatusCode status, Place place, size_t length, Diagnostic d,
                     std::string_view hint = {}) const;

 private:
  std::string path_, text_;
  std::vector<size_t> line_begin_;
};

// The whole of a file of at most `most` bytes. Otherwise (no such file, a folder, a larger one)
// `problem` as an error, with the file as its place and the reason.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t most, Diagnostic problem);

// The position of the first byte that no text file holds: control characters but for tab and line
// ends, and what is not UTF-8. npos when there is none.
size_t FindNonText(std::string_view text);

}  // namespace daydream
