#include "tools/diagnostics.h"

#include <vector>

#include "report/text/format.h"
#include "report/text/json_writer.h"

namespace daydream {
namespace {

constexpr std::string_view kReset = "\033[0m";
constexpr std::string_view kBold = "\033[1m";

std::string_view Word(Severity s) {
  switch (s) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      break;
  }
  return "note";
}

std::string_view ColorOf(Severity s) {
  switch (s) {
    case Severity::kError:
      return "\033[1;31m";
    case Severity::kWarning:
      return "\033[1;33m";
    case Severity::kNote:
      break;
  }
  return "\033[1;36m";
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(Printable(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// `text` behind `used` columns, in lines of `width` that are indented like an item.
std::string Folded(std::string_view text, size_t used, size_t width) {
  std::string out;
  while (width > 0 && used + DisplayWidth(text) > width) {
    const size_t room = width > used ? width - used : 0;
    size_t end = text.rfind(' ', std::min(room, text.size()));
    if (end == std::string_view::npos || end == 0) end = text.find(' ', 1);
    if (end == std::string_view::npos) break;
    out += fmt::format("{}\n{:5}", text.substr(0, end), "");
    text.remove_prefix(end + 1);
    used = 5;
  }
  return out + std::string(text);
}

// "   = why: first line" and further lines below the first's text.
std::string Item(std::string_view label, std::string_view text, size_t width) {
  std::string out, head = fmt::format("   = {}: ", label);
  for (const std::string& line : Lines(text)) {
    out += fmt::format("{}{}\n", head, Folded(line, head.size(), width));
    head.assign(head.size(), ' ');
  }
  return out;
}

// The number of the line in "PATH:LINE:COLUMN"; empty for other texts.
std::string LineOfPlace(std::string_view text) {
  size_t column = text.rfind(':');
  if (column == std::string_view::npos || column == 0) return "";
  size_t line = text.rfind(':', column - 1);
  if (line == std::string_view::npos) return "";
  std::string number(text.substr(line + 1, column - line - 1));
  bool digits = !number.empty() && column + 1 < text.size();
  for (char c : number + std::string(text.substr(column + 1))) digits &= c >= '0' && c <= '9';
  return digits ? number : "";
}

std::string AsJson(const Diagnostic& d, Severity severity) {
  JsonWriter json(0);
  json.BeginObject().Key("schema").String("daydream.message/1");
  json.Key("severity").String(Word(severity));
  const std::pair<std::string_view, const std::string*> fields[] = {
      {"code", &d.code}, {"what", &d.what},     {"where", &d.where},
      {"why", &d.why},   {"effect", &d.effect}, {"fix", &d.fix}};
  for (const auto& [key, text] : fields) {
    if (!text->empty()) json.Key(key).String(*text);
  }
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace

std::string FormatDiagnostic(const Diagnostic& d, Severity severity, const DiagnosticStyle& style) {
  if (style.json) return AsJson(d, severity);
  std::string label(Word(severity));
  if (!d.code.empty()) {
    label += '[';
    // Warnings share the numbers of errors but begin with W.
    label += severity == Severity::kWarning && d.code[0] == 'E' ? "W" + d.code.substr(1) : d.code;
    label += ']';
  }
  std::vector<std::string> what = Lines(d.what);
  const std::string first =
      what.empty() ? "unknown error" : Folded(what[0], label.size() + 2, style.width);
  std::string out = style.color ? fmt::format("{}{}{}{}: {}{}\n", ColorOf(severity), label, kReset,
                                              kBold, first, kReset)
                                : fmt::format("{}: {}\n", label, first);
  for (size_t i = 1; i < what.size(); ++i) out += fmt::format("   |  {}\n", what[i]);
  std::vector<std::string> where = Lines(d.where);
  if (where.size() == 3 && LineOfPlace(where[0]) != "") {
    // A place in a text file, its line and a line of carets.
    std::string line = LineOfPlace(where[0]), margin(line.size(), ' ');
    out += fmt::format("{}--> {}\n{} |\n{} |  {}\n{} |  {}\n", margin, where[0], margin, line,
                       where[1], margin, where[2]);
  } else if (where.size() == 1) {
    out += fmt::format("  --> {}\n", where[0]);
  } else {
    for (const std::string& line : where) out += fmt::format("   |  {}\n", line);
  }
  out += Item("why", d.why, style.width);
  out += Item("effect", d.effect, style.width);
  out += Item("fix", d.fix, 0);  // to be copied
  return out;
}

Exit ExitOf(const absl::Status& status) {
  if (status.ok()) return Exit::kOk;
  std::string code = DiagnosticOf(status).code;
  if (code.size() == 5 && (code[0] == 'E' || code[0] == 'W')) {
    std::string_view area = std::string_view(code).substr(1, 2);
    if (code == "E0105" || area == "09") return Exit::kFailed;
    if (code == "E0120" || code == "E0121") return Exit::kNoRoom;
    // The file is fine, but the trace is not what it works on.
    if (code.starts_with("E042")) return Exit::kCannotAnswer;
    if (code == "E0430" || code == "E0431" || code == "E0434") return Exit::kBadInput;
    if (area == "01" || area == "04") return Exit::kUsage;
    if (area == "02") return Exit::kBadInput;
    if (area == "03" || area == "06") return Exit::kCannotAnswer;
    if (code == "E0504") return Exit::kNotFound;
    if (code == "E0505") return Exit::kNotExecutable;
    if (area == "05") return Exit::kNotStarted;
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return Exit::kUsage;
    case absl::StatusCode::kDataLoss:
      return Exit::kBadInput;
    case absl::StatusCode::kFailedPrecondition:
      return Exit::kCannotAnswer;
    default:
      return Exit::kFailed;
  }
}

absl::Status WithCode(const absl::Status& status, std::string_view code) {
  if (status.ok()) return status;
  Diagnostic d = DiagnosticOf(status);
  if (d.code.empty()) d.code = std::string(code);
  return MakeStatus(status.code(), std::move(d));
}

}  // namespace daydream
