// What is known about a file, as lines of text or a list in Markdown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/questions/findings.h"
#include "report/text/escape.h"
#include "tools/output/describe.h"
#include "tools/output/findings_text.h"
#include "tools/output/markdown.h"

namespace daydream {

// Blocks of "label       text" lines, in Markdown items of a list.
class Sheet {
 public:
  explicit Sheet(bool markdown) : markdown_(markdown) {}
  void Line(std::string_view label, std::string_view text) {
    if (!markdown_) {
      out_ += Paragraph(label, text, 12);
    } else if (label.empty()) {
      out_ += fmt::format("  * {}\n", MarkdownText(text));
    } else {
      out_ += fmt::format("* {}: {}\n", MarkdownText(label), MarkdownText(text));
    }
  }
  void Blank() { out_ += "\n"; }
  void Text(std::string_view text) { out_ += markdown_ ? PlainMarkdown(text) : std::string(text); }
  void Findings(const std::vector<Finding>& findings) {
    out_ += markdown_ ? FindingsMarkdown(findings) : FindingsText(findings);
  }
  std::string Take() { return std::move(out_); }

 private:
  bool markdown_;
  std::string out_;
};

}  // namespace daydream
