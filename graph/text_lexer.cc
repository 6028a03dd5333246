#include "graph/text_lexer.h"

#include <iterator>
#include <utility>

namespace daydream {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Reads quoted text that begins at `at` (on the quote); moves `at` past it. False when it is not
// closed or holds an unknown escape.
bool ReadQuoted(std::string_view line, size_t& at, std::string& text) {
  for (++at; at < line.size(); ++at) {
    if (line[at] == '"') return ++at, true;
    if (line[at] != '\\') {
      text += line[at];
      continue;
    }
    if (++at == line.size()) return false;
    switch (line[at]) {
      case '"':
      case '\\':
        text += line[at];
        break;
      case 'n':
        text += '\n';
        break;
      case 'x': {
        const int high = at + 2 < line.size() ? HexDigit(line[at + 1]) : -1;
        const int low = at + 2 < line.size() ? HexDigit(line[at + 2]) : -1;
        if (high < 0 || low < 0) return false;
        text += static_cast<char>(high * 16 + low);
        at += 2;
        break;
      }
      default:
        return false;
    }
  }
  return false;
}

}  // namespace

absl::Status TextError(size_t line, size_t column, std::string what) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.what = std::move(what), .where = fmt::format("line {}, column {}", line, column)});
}

absl::StatusOr<std::vector<Token>> SplitLine(std::string_view line, size_t line_number) {
  std::vector<Token> tokens;
  size_t at = 0;
  while (true) {
    while (at < line.size() && IsSpace(line[at])) ++at;
    if (at == line.size() || line[at] == '#') return tokens;
    Token token{.column = at + 1};
    const size_t begin = at;
    while (at < line.size() && !IsSpace(line[at]) && line[at] != '"') ++at;
    token.word = line.substr(begin, at - begin);
    if (at < line.size() && line[at] == '"') {
      token.quoted = true;
      const size_t quote = at;
      if (!ReadQuoted(line, at, token.text)) {
        return TextError(line_number, quote + 1, "text is not closed or has an unknown escape");
      }
      if (at < line.size() && !IsSpace(line[at])) {
        return TextError(line_number, at + 1, "expected a space after the closing quote");
      }
    }
    tokens.push_back(std::move(token));
  }
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

}  // namespace daydream
