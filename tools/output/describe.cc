#include "tools/output/describe.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "report/predict/residuals.h"
#include "report/text/format.h"
#include "report/text/table.h"
#include "report/text/unit_word.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/scenario.h"
#include "transforms/scenario/turn.h"

namespace daydream {

std::string Paragraph(std::string_view label, std::string_view text, size_t indent) {
  if (text.empty()) return "";
  std::string out, line = fmt::format("{:<{}}", label, indent);
  size_t used = line.size();
  bool empty = true;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(" \n"), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const std::string shown = Printable(word);
    if (!empty && used + 1 + word.size() > kProseWidth) {
      // A number goes along with its unit.
      const size_t last = line.rfind(' ');
      const bool number = IsUnit(word) && last > indent && line.back() >= '0' && line.back() <= '9';
      const std::string along = number ? line.substr(last + 1) : "";
      if (number) line.resize(last);
      out += line + "\n";
      line = std::string(indent, ' ') + along;
      used = line.size();
      empty = along.empty();
    }
    if (!empty) line += ' ', ++used;
    line += shown;
    used += shown.size();
    empty = false;
  }
  return out + line + "\n";
}

std::string DescribeDefault(const ParamSpec& spec) {
  if (spec.required) return "required";
  if (spec.unit == Unit::kText) return std::string(spec.text_fallback);
  std::string text = FormatValue(spec.fallback, spec.unit);
  if (spec.low < spec.high) {
    text += fmt::format(" ({} to {})", FormatValue(spec.low, spec.unit),
                        FormatValue(spec.high, spec.unit));
  }
  return text;
}

std::string DescribeTransform(const Transform& t) {
  std::string out = fmt::format("{}: {}\n\n", t.name, t.summary);
  if (t.bound) out += Paragraph("kind", "a limit, not a prediction; printed with <=");
  out += Paragraph("model", t.model);
  out += Paragraph("memory", t.memory_model);
  out += Paragraph("ignores", t.ignores);
  out += Paragraph("sources", t.sources);
  if (!t.bound && !t.stated_by_user) out += Paragraph("checked", CheckedText(t.name));
  for (const Transform* other : Transforms()) {
    if (other == &t) continue;
    // A list is put into this order, whatever order it was written in.
    const bool first = TurnOf({.transform = &t}) < TurnOf({.transform = other});
    const std::optional<Conflict> conflict =
        first ? FindConflict(t, *other) : FindConflict(*other, t);
    if (!conflict.has_value()) continue;
    out += Paragraph("not with", fmt::format("{}: {}", other->name, conflict->reason));
  }
  if (!t.advice.how.empty()) {
    out += Paragraph("try it", fmt::format("{} (effort: {}; risk: {})", t.advice.how,
                                           t.advice.effort, t.advice.risk));
  }
  out += t.file != nullptr ? fmt::format("{:<13}{}\n", "file", Printable(t.file->path()))
                           : fmt::format("{:<13}docs/optimizations/{}.md\n", "more", t.name);
  for (const ParamSpec& spec : t.params) {
    out += fmt::format("\nparameter    {} = {}\n", spec.name, DescribeDefault(spec));
    out += Paragraph("", spec.help);
    std::string choices;
    for (std::string_view choice : spec.choices) {
      choices += fmt::format("{}{}", choices.empty() ? "one of " : ", ", choice);
    }
    out += Paragraph("", choices);
    out += Paragraph("", spec.source.empty() ? "" : fmt::format("source: {}", spec.source));
    out += Paragraph("", fmt::format("change it: --opt '{}({}=...)' or --set {}.{}=...", t.name,
                                     spec.name, t.name, spec.name));
  }
  return out;
}

std::string_view UseText(StepUse use) {
  switch (use) {
    case StepUse::kWarmUp:
      return "warm-up";
    case StepUse::kLabelled:
      return "labelled";
    case StepUse::kNotRecorded:
      return "not recorded";
    case StepUse::kBeside:
      return "beside";
    case StepUse::kStub:
      return "stub";
    case StepUse::kMeasured:
      break;
  }
  return "measured";
}

}  // namespace daydream
