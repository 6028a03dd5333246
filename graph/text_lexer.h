// Splits one line of the text form into tokens. Internal to graph/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

// A word, a quoted text, or both: `shapes="[[1]]"` is the word `shapes=` and a text.
struct Token {
  std::string_view word;
  std::string text;  // of the quotes, without escapes
  bool quoted = false;
  size_t column = 1;
};

// Spaces and tabs separate tokens, '#' outside of quotes begins a comment.
absl::StatusOr<std::vector<Token>> SplitLine(std::string_view line, size_t line_number);

// `text` in quotes, with what is not printable escaped.
std::string Quote(std::string_view text);

// "what (line 3, column 7)".
absl::Status TextError(size_t line, size_t column, std::string what);

}  // namespace daydream
