#include "tools/output/answers_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/status.h"
#include "report/text/format.h"
#include "tools/output/describe.h"

namespace daydream {
namespace {

// The reason without the name, with which most messages begin.
std::string WhyNot(const Answer& a) {
  std::string why = Printable(DiagnosticOf(a.status).what);
  const std::string name = fmt::format("{}: ", a.transform->name);
  if (why.starts_with(name)) why.erase(0, name.size());
  return why;
}

void Append(std::string_view name, std::string& names) {
  names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
}

}  // namespace

std::string AnswersText(std::span<const Answer> answers) {
  std::string yes;
  std::vector<std::pair<std::string, std::string>> no;  // reason, names; in order of appearance
  for (const Answer& a : answers) {
    if (a.status.ok()) {
      Append(a.transform->name, yes);
      continue;
    }
    const std::string why = WhyNot(a);
    auto it = std::ranges::find(no, why, &std::pair<std::string, std::string>::first);
    if (it == no.end()) it = no.insert(no.end(), {why, ""});
    Append(a.transform->name, it->second);
  }
  std::string out = Paragraph("  yes", yes, 7);
  for (const auto& [why, names] : no) {
    out += Paragraph("  no", fmt::format("{}: {}", names, why), 7);
  }
  return out;
}

}  // namespace daydream
