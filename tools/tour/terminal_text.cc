#include "tools/tour/terminal_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "report/text/format.h"
#include "report/text/table.h"

namespace daydream {
namespace {

std::string_view FirstWord(std::string_view line) {
  line.remove_prefix(IndentOf(line));
  // A rule is as long as there is room.
  if (line.starts_with("---")) return "---";
  return line.substr(0, line.find(' '));
}

// Names in the tables of a narrow terminal may have their middle cut out: "speedup...by=2x)".
bool SameWord(std::string_view narrow, std::string_view wide) {
  const size_t cut = narrow.find("...");
  if (cut == narrow.npos || cut == 0) return narrow == wide;
  return wide.starts_with(narrow.substr(0, cut)) && wide.ends_with(narrow.substr(cut + 3));
}

// How often a line of `lines` up to the one at `last` has the first word of that one.
size_t CountUpTo(const std::vector<std::string_view>& lines, size_t last) {
  const std::string_view word = FirstWord(lines[last]);
  return static_cast<size_t>(
      std::count_if(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                    [&](std::string_view line) { return FirstWord(line) == word; }));
}

// The place behind the line of `narrow` that is the one of `wide` at `last`, and behind what it
// goes on with; 0: there is none.
size_t EndOfRow(const std::vector<std::string_view>& narrow,
                const std::vector<std::string_view>& wide, size_t last) {
  const std::string_view word = FirstWord(wide[last]);
  size_t left = CountUpTo(wide, last);
  for (size_t i = 0; i < narrow.size(); ++i) {
    if (!SameWord(FirstWord(narrow[i]), word) || --left > 0) continue;
    const std::string_view next = last + 1 < wide.size() ? FirstWord(wide[last + 1]) : "";
    size_t end = i + 1;
    while (end < narrow.size() && IndentOf(narrow[end]) > IndentOf(narrow[i]) &&
           !SameWord(FirstWord(narrow[end]), next)) {
      ++end;
    }
    return end;
  }
  return 0;
}

std::string Joined(const std::vector<std::string_view>& lines, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end; ++i) out.append(lines[i]).append("\n");
  return out;
}

}  // namespace

std::vector<std::string_view> TextLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

std::string CutAlike(std::string_view narrow, std::string_view wide, int lines) {
  std::vector<std::string_view> from = TextLines(narrow), like = TextLines(wide);
  const size_t most = static_cast<size_t>(std::abs(lines));
  if (lines == 0 || most >= like.size()) return std::string(narrow);
  if (lines > 0) {
    size_t last = most - 1;
    while (last > 0 && like[last].empty()) --last;
    return Joined(from, 0, EndOfRow(from, like, last));
  }
  // From the end: the first line that is kept is the last one of the texts turned around.
  std::reverse(from.begin(), from.end());
  std::reverse(like.begin(), like.end());
  size_t last = most - 1;
  while (last > 0 && like[last].empty()) --last;
  const size_t end = EndOfRow(from, like, last);
  std::reverse(from.begin(), from.end());
  return end == 0 ? "" : Joined(from, from.size() - end, from.size());
}

std::string FoldedCommand(std::string_view prompt, std::string_view command, size_t width) {
  constexpr std::string_view kBehind = " \\";
  // What stays together: a word, a flag with its value, and all from a pipe on.
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') quoted = !quoted;
    const bool between = c == ' ' || c == '\n' || c == '\\';
    if (!between || quoted) {
      parts.back() += c;
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  std::vector<std::string> kept;
  for (const std::string& part : parts) {
    const bool flag_before = !kept.empty() && kept.back().starts_with("--") &&
                             kept.back().find(' ') == std::string::npos;
    const bool value = flag_before && !part.starts_with("-") && part != "|";
    const bool piped = !kept.empty() && kept.back().starts_with("|");
    if (value || piped) {
      kept.back() += " " + part;
    } else if (!part.empty()) {
      kept.push_back(part);
    }
  }
  std::string out(prompt);
  const std::string below(prompt.size() + 2, ' ');
  size_t column = prompt.size();
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t behind = i + 1 < kept.size() ? kBehind.size() : 0;
    if (i > 0 && column + 1 + DisplayWidth(kept[i]) + behind > width) {
      out += std::string(kBehind) + "\n" + below;
      column = below.size();
    } else if (i > 0) {
      out += ' ';
      ++column;
    }
    out += kept[i];
    column += DisplayWidth(kept[i]);
  }
  return out;
}

}  // namespace daydream
