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
};

struct TableStyle {
  size_t max_width = 0;  // columns of the terminal; 0 = never cut names
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

  // Two spaces between columns; the first left-aligned column is cut when the terminal is narrow.
  std::string Text(const TableStyle& style = {}) const;
  std::string Markdown() const;
  // RFC 4180 with "\n" line ends; headers as they are.
  std::string Csv() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool rule_before = false;
  };
  std::vector<size_t> Widths(const TableStyle& style) const;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  bool rule_pending_ = false;
};

// One CSV field, quoted when it has to be. A leading =, +, -, @ of text that is no number is
// kept as it is: the file is for programs.
std::string CsvField(std::string_view text);

}  // namespace daydream
