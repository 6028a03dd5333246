// Aligned tables for people, and the same rows as Markdown and CSV.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace daydream {

enum class Align : uint8_t { kLeft, kRight };

struct Column {
  std::string header;
  Align align = Align::kRight;
  // Above 0: left out of text that would be too wide, the largest number first.
  int spare = 0;
};

struct TableStyle {
  size_t max_width = 0;  // columns of the terminal; 0 = no limit
  size_t max_name = 0;   // of a left-aligned cell, which is cut in the middle; 0 = no limit
  size_t indent = 2;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty. REQUIRES: no more cells than columns.
  void AddRow(std::vector<std::string> cells);
  // A line of dashes before the next row (text only).
  void AddRule();
  size_t rows() const { return rows_.size(); }

  // Two spaces between columns. When the terminal is narrow, spare columns are left out (a line
  // below says which), then the widest left-aligned columns are cut.
  std::string Text(const TableStyle& style = {}) const;
  std::string Markdown() const;
  // RFC 4180 with "\n" line ends; headers as they are.
  std::string Csv() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool rule_before = false;
  };
  std::vector<size_t> NaturalWidths(const TableStyle& style) const;
  // Of the columns that are shown; 0 for those without text and those that are left out, whose
  // names go to `spared`.
  std::vector<size_t> Widths(const TableStyle& style, std::vector<std::string>& spared) const;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  bool rule_pending_ = false;
};

// One CSV field, quoted when it has to be. A leading =, +, -, @ of text that is no number is
// kept as it is: the file is for programs.
std::string CsvField(std::string_view text);

}  // namespace daydream
