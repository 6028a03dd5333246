// Lines of C++ without comments and text, and the functions in them, for the tests that check them.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <re2/re2.h>

#include "tests/source_tree.h"

namespace daydream {

// The line without comments and without the contents of string and character literals. `in_block`
// carries a /* comment */ over lines, `raw_end` a raw string.
inline std::string CodeOnly(std::string_view line, bool& in_block, std::string& raw_end) {
  std::string code;
  for (size_t i = 0; i < line.size(); ++i) {
    std::string_view rest = line.substr(i);
    if (!raw_end.empty()) {
      size_t end = rest.find(raw_end);
      if (end == std::string_view::npos) return code;
      i += end + raw_end.size() - 1;
      raw_end.clear();
    } else if (in_block) {
      size_t end = rest.find("*/");
      if (end == std::string_view::npos) return code;
      i += end + 1;
      in_block = false;
    } else if (rest.starts_with("//")) {
      return code;
    } else if (rest.starts_with("/*")) {
      in_block = true;
      ++i;
    } else if (rest.starts_with("R\"")) {
      size_t open = rest.find('(');
      if (open == std::string_view::npos) return code;
      raw_end = ")" + std::string(rest.substr(2, open - 2)) + "\"";
      i += open;
    } else if (rest[0] == '"' || (rest[0] == '\'' && (i == 0 || !isalnum(line[i - 1])))) {
      size_t end = i + 1;
      while (end < line.size() && line[end] != rest[0]) end += line[end] == '\\' ? 2 : 1;
      code += "\"\"";
      i = end;
    } else {
      code += rest[0];
    }
  }
  return code;
}

inline std::vector<std::string> CodeLines(const SourceFile& file) {
  std::vector<std::string> lines;
  bool in_block = false;
  std::string raw_end;
  for (const std::string& line : file.lines) lines.push_back(CodeOnly(line, in_block, raw_end));
  return lines;
}

struct Function {
  std::string head;  // what stands before the opening brace
  size_t line = 0;   // where the head begins, from 1
  size_t length = 0;
};

// Finds functions by their braces: a block is one when its head has a parenthesis and it stands in
// no other function. Good enough for formatted code.
inline std::vector<Function> FunctionsOf(const std::vector<std::string>& lines) {
  static const RE2 scope(R"re(^\s*(namespace|extern|(inline )?namespace)\b|^\s*$)re");
  static const RE2 type(R"re(\b(struct|class|union|enum)\b)re");
  std::vector<Function> functions;
  std::vector<bool> blocks;  // open braces; true: body of a function
  std::string head;
  size_t head_line = 0, inside = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("#")) continue;
    for (char c : lines[i]) {
      if (c == '{') {
        bool is_function = inside == 0 && head.find('(') != std::string::npos &&
                           !RE2::PartialMatch(head, scope) &&
                           !(RE2::PartialMatch(head, type) && head.find(") ") == head.npos);
        if (is_function) functions.push_back({head, head_line, 0});
        blocks.push_back(is_function);
        inside += is_function;
        head.clear();
      } else if (c == '}') {
        if (!blocks.empty() && blocks.back()) {
          --inside;
          functions.back().length = i + 2 - functions.back().line;
        }
        if (!blocks.empty()) blocks.pop_back();
        head.clear();
      } else if (c == ';') {
        head.clear();
      } else if (!head.empty() || !isspace(c)) {
        if (head.empty()) head_line = i + 1;
        head += c;
      }
    }
    if (!head.empty()) head += ' ';
  }
  return functions;
}

}  // namespace daydream
