// The pages of errors, as one list.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/pages/topics.h"

namespace daydream {

std::span<const ErrorPage> ErrorPages() {
  static const auto& all = *[] {
    auto* pages = new std::vector<ErrorPage>();
    for (std::span<const ErrorPage> part : {InputErrorPages(), WorkErrorPages()}) {
      pages->insert(pages->end(), part.begin(), part.end());
    }
    return pages;
  }();
  return all;
}

const ErrorPage* FindErrorPage(std::string_view code) {
  if (code.size() != 5 || std::string_view("EeWw").find(code[0]) == code.npos) return nullptr;
  for (const ErrorPage& page : ErrorPages()) {
    if (page.code.substr(1) == code.substr(1)) return &page;
  }
  return nullptr;
}

std::string ErrorsMarkdown() {
  std::string out =
      "# Error codes\n\n"
      "Printed by `daydream explain CODE`. The first two digits are the area: 01 command line, 02\n"
      "reading the input, 03 what the input lacks, 04 option files, 05 recording, 06 model and\n"
      "replay, 07 sweeps, 08 GPUs and networks, 09 our own mistakes. Warnings have the numbers of\n"
      "their errors and begin with W.\n";
  for (const ErrorPage& page : ErrorPages()) {
    out += fmt::format("\n## {}: {}\n\n{}\n", page.code, page.title, page.text);
  }
  return out;
}

}  // namespace daydream
