#include "tools/output/markdown.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/text/escape.h"

namespace daydream {

std::string LinesMarkdown(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\\\n" : std::string(1, c);
  while (out.ends_with("\\\n")) out.resize(out.size() - 2);
  return out + "\n";
}

std::string PlainMarkdown(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines += MarkdownText(StripSpaces(text.substr(0, end))) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (lines.ends_with("\n\n")) lines.pop_back();
  return LinesMarkdown(lines);
}

std::string VerdictMarkdown(std::span<const Verdict> gates, std::string_view of) {
  if (gates.empty()) return "";
  std::string holds, open, none;
  for (const Verdict& v : gates) {
    std::string& list = !v.holds.has_value() ? open : *v.holds ? holds : none;
    list += (list.empty() ? "" : ", ") + MarkdownText(v.text);
  }
  const std::string word = !holds.empty()     ? fmt::format("failed, \"{}\" holds", holds)
                           : !open.empty()    ? fmt::format("not decided, \"{}\"", open)
                           : gates.size() > 1 ? fmt::format("passed, none of \"{}\" holds", none)
                                              : fmt::format("passed, \"{}\" does not hold", none);
  const bool passed = holds.empty() && open.empty();
  return fmt::format("> [!{}]\n> **{}** for {}\n\n", passed ? "TIP" : "CAUTION", word, of);
}

}  // namespace daydream
