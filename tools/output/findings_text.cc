#include "tools/output/findings_text.h"

#include <algorithm>

#include "report/text/escape.h"
#include "report/text/format.h"
#include "tools/output/describe.h"
#include "tools/session.h"

namespace daydream {
namespace {

constexpr size_t kLongestPlace = 120;  // names of kernels can be some hundred long

}  // namespace

std::string FindingsText(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& f : findings) {
    out += Paragraph("!", Printable(f.text));
    if (!f.where.empty() && f.text.find(f.where) == std::string::npos) {
      out += Paragraph("  where", CutMiddle(Printable(f.where), kLongestPlace));
    }
    out += Paragraph("  do", Printable(f.fix));
  }
  return out.empty() ? "" : out + "\n";
}

std::string FindingsMarkdown(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& f : findings) {
    out += fmt::format("* **{}**", MarkdownText(f.text));
    if (!f.fix.empty()) out += ": " + MarkdownText(f.fix);
    out += "\n";
  }
  return out.empty() ? "" : out + "\n";
}

absl::Status BesideFindings(const absl::Status& error, const std::vector<Finding>& findings,
                            const Args& args) {
  const auto format = FormatOf(args);
  if (error.ok() || !format.ok() || *format == Format::kCsv) return error;
  Diagnostic d = DiagnosticOf(error);
  const auto said = std::ranges::find(findings, d.why, [](const Finding& f) { return f.text; });
  if (d.why.empty() || said == findings.end()) return error;
  d.why = "a finding of the result says it";
  d.where.clear();
  if (d.fix == said->fix) d.fix.clear();
  return MakeStatus(error.code(), std::move(d));
}

void WriteFindings(const std::vector<Finding>& findings, JsonWriter& json) {
  json.Key("findings").BeginArray();
  for (const Finding& f : findings) {
    json.BeginInlineObject().Key("kind").String(Name(f.kind)).Key("about").String(Name(f.about));
    json.Key("text").String(f.text).Key("where").String(f.where);
    json.Key("ms").Double(f.time.ms()).Key("share").Rounded(f.share, 6);
    json.Key("fix").String(f.fix).EndObject();
  }
  json.EndArray();
}

}  // namespace daydream
