#include "report/text/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr size_t kBetween = 2;     // spaces between columns
constexpr size_t kNarrowest = 12;  // a cut name keeps at least this many columns

std::string Pad(std::string_view text, size_t width, Align align) {
  size_t have = DisplayWidth(text);
  std::string spaces(have < width ? width - have : 0, ' ');
  return align == Align::kLeft ? std::string(text) + spaces : spaces + std::string(text);
}

void TrimRight(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::string MarkdownCell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  DD_CHECK(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), std::exchange(rule_pending_, false)});
}

void Table::AddRule() { rule_pending_ = true; }

std::vector<size_t> Table::Widths(const TableStyle& style) const {
  std::vector<size_t> widths;
  for (const Column& c : columns_) widths.push_back(DisplayWidth(c.header));
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row.cells[i]));
    }
  }
  if (style.max_width == 0) return widths;
  size_t total = style.indent + kBetween * (widths.size() - 1);
  for (size_t w : widths) total += w;
  for (size_t i = 0; i < widths.size() && total > style.max_width; ++i) {
    if (columns_[i].align != Align::kLeft || widths[i] <= kNarrowest) continue;
    size_t cut = std::min(total - style.max_width, widths[i] - kNarrowest);
    widths[i] -= cut;
    total -= cut;
  }
  return widths;
}

std::string Table::Text(const TableStyle& style) const {
  if (columns_.empty()) return "";
  std::vector<size_t> widths = Widths(style);
  size_t inner = kBetween * (widths.size() - 1);
  for (size_t w : widths) inner += w;
  const std::string indent(style.indent, ' ');
  const std::string rule = indent + std::string(inner, '-') + "\n";

  auto line = [&](auto&& cell) {
    std::string text = indent;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) text.append(kBetween, ' ');
      text += Pad(CutMiddle(cell(i), widths[i]), widths[i], columns_[i].align);
    }
    TrimRight(text);
    return text + "\n";
  };
  std::string out = line([&](size_t i) -> std::string_view { return columns_[i].header; });
  out += rule;
  for (const Row& row : rows_) {
    if (row.rule_before) out += rule;
    out += line([&](size_t i) -> std::string_view { return row.cells[i]; });
  }
  if (rule_pending_) out += rule;
  return out;
}

std::string Table::Markdown() const {
  std::string out = "|", marks = "|";
  for (const Column& c : columns_) {
    out += " " + MarkdownCell(c.header) + " |";
    marks += c.align == Align::kLeft ? " --- |" : " ---: |";
  }
  out += "\n" + marks + "\n";
  for (const Row& row : rows_) {
    out += "|";
    for (const std::string& cell : row.cells) out += " " + MarkdownCell(cell) + " |";
    out += "\n";
  }
  return out;
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
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
