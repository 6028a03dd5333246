#include "report/html/page.h"

#include <fmt/format.h>

#include "base/check.h"
#include "report/html/page_text.h"
#include "report/text/escape.h"

namespace daydream {
namespace {

std::string EscapedJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

// Cuts `rest` at `mark` and returns what stands before it.
std::string_view UpTo(std::string_view mark, std::string_view& rest) {
  const size_t at = rest.find(mark);
  DD_CHECK(at != std::string_view::npos);
  const std::string_view before = rest.substr(0, at);
  rest.remove_prefix(at + mark.size());
  return before;
}

}  // namespace

std::string HtmlPage(std::string_view title, std::span<const PageBlock> blocks) {
  std::string_view rest = PageText();
  std::string out(UpTo("<!-- title -->", rest));
  out += HtmlText(title);
  out += UpTo("<!-- data -->", rest);
  for (const PageBlock& block : blocks) {
    out += fmt::format("<script type=\"application/json\" id=\"{}\">", block.id);
    out += EscapedJson(block.json);
    out += "</script>\n";
  }
  return out.append(rest);
}

}  // namespace daydream
