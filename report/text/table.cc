#include "report/text/table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "report/text/escape.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr size_t kBetween = 2;  // spaces between columns
// A cut name keeps this many columns while columns can be spared, and then the least.
constexpr size_t kReadable = 20, kLeast = 10;

std::string Pad(std::string_view text, size_t width, Align align) {
  size_t have = DisplayWidth(text);
  std::string spaces(have < width ? width - have : 0, ' ');
  return align == Align::kLeft ? std::string(text) + spaces : spaces + std::string(text);
}

// One line, without its end, in the colour of `code`.
std::string Colored(const std::string& line, std::string_view code) {
  const size_t end = line.size() - (line.ends_with('\n') ? 1 : 0);
  return fmt::format("\033[{}m{}\033[0m{}", code, line.substr(0, end), line.substr(end));
}

void TrimRight(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  DD_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), std::exchange(rule_pending_, false)});
}

void Table::SetTone(Tone tone) {
  DD_CHECK(!rows_.empty());
  rows_.back().tone = tone;
}

void Table::AddRule() { rule_pending_ = true; }

std::vector<size_t> Table::NaturalWidths(const TableStyle& style) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = 0;
    for (const Row& row : rows_) width = std::max(width, DisplayWidth(row.cells[i]));
    if (style.max_name > 0 && columns_[i].align == Align::kLeft && !columns_[i].whole) {
      width = std::min(width, style.max_name);
    }
    widths.push_back(std::max(width, DisplayWidth(columns_[i].header)));
  }
  return widths;
}

std::vector<size_t> Table::Widths(const TableStyle& style, std::vector<std::string>& spared) const {
  std::vector<size_t> widths = NaturalWidths(style);
  if (style.max_width == 0) return widths;
  size_t narrowest = kReadable;
  auto cuttable = [&](size_t i) {
    return columns_[i].align == Align::kLeft && !columns_[i].whole && widths[i] > narrowest;
  };
  // With every name cut as far as it may be, or as it is.
  auto total = [&](bool cut) {
    size_t sum = style.indent, shown = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      sum += cut && cuttable(i) ? narrowest : widths[i];
      shown += widths[i] > 0;
    }
    return sum + kBetween * (std::max<size_t>(shown, 1) - 1);
  };
  while (total(true) > style.max_width) {
    size_t most = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0 || columns_[i].spare == 0) continue;
      if (most == columns_.size() || columns_[i].spare > columns_[most].spare) most = i;
    }
    if (most == columns_.size()) break;
    widths[most] = 0;
    if (!columns_[most].header.empty()) spared.push_back(columns_[most].header);
  }
  if (total(true) > style.max_width) narrowest = kLeast;
  while (total(false) > style.max_width) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!cuttable(i)) continue;
      if (widest == columns_.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::Text(const TableStyle& style) const {
  if (columns_.empty()) return "";
  std::vector<std::string> spared;
  const std::vector<size_t> widths = Widths(style, spared);
  size_t inner = 0;
  for (size_t w : widths) inner += w > 0 ? w + kBetween : 0;
  inner -= std::min(inner, kBetween);
  const std::string indent(style.indent, ' ');
  std::string rule = indent + std::string(inner, '-') + "\n";
  if (style.color) rule = Colored(rule, "2");

  std::vector<std::vector<std::string>> cells(columns_.size());  // as shown
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    for (const Row& row : rows_) cells[i].push_back(Printable(row.cells[i]));
    cells[i] = CutApart(cells[i], widths[i]);
  }
  auto line = [&](auto&& cell) {
    std::string text = indent;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) continue;
      if (text.size() > indent.size()) text.append(kBetween, ' ');
      text += Pad(cell(i), widths[i], columns_[i].align);
    }
    TrimRight(text);
    return text + "\n";
  };
  std::string out = line([&](size_t i) { return CutMiddle(columns_[i].header, widths[i]); });
  if (style.color) out = Colored(out, "1");
  out += rule;
  for (const Row& row : rows_) {
    if (row.rule_before) out += rule;
    const auto at = static_cast<size_t>(&row - rows_.data());
    const std::string text = line([&](size_t i) -> std::string_view { return cells[i][at]; });
    const bool plain = !style.color || row.tone == Tone::kPlain;
    out += plain ? text : Colored(text, row.tone == Tone::kBetter ? "36" : "33");
  }
  if (rule_pending_) out += rule;
  if (spared.empty()) return out;
  std::string names;
  for (const std::string& name : spared) names += (names.empty() ? "" : ", ") + name;
  return out + indent + "with --wide also: " + names + "\n";
}

std::string Table::Markdown() const {
  std::string out = "|", marks = "|";
  for (const Column& c : columns_) {
    out += " " + MarkdownText(c.header) + " |";
    marks += c.align == Align::kLeft ? " --- |" : " ---: |";
  }
  out += "\n" + marks + "\n";
  for (const Row& row : rows_) {
    out += "|";
    for (const std::string& cell : row.cells) out += " " + MarkdownText(cell) + " |";
    out += "\n";
  }
  return out;
}

std::string Table::Csv() const {
  std::string out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    out += (i > 0 ? "," : "") + CsvField(columns_[i].header);
  }
  out += "\n";
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.cells.size(); ++i)
      out += (i > 0 ? "," : "") + CsvField(row.cells[i]);
    out += "\n";
  }
  return out;
}

}  // namespace daydream
