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
  bool whole = false;  // never cut: it is there to be copied
};

struct TableStyle {
  size_t max_width = 0;  // columns of the terminal; 0 = no limit
  size_t max_name = 0;   // of a left-aligned cell, which is cut in the middle; 0 = no limit
  size_t indent = 2;
  bool color = false;  // heads and rules stand back, rows have their tone; ANSI, "ESC [ 36 m"
};

// What a row says at a glance, in its colour; the text of the row says it as well. Cyan and yellow
// are told apart by people who do not tell red from green.
enum class Tone : uint8_t { kPlain, kBetter, kWorse };

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells are empty. REQUIRES: no more cells than columns.
  void AddRow(std::vector<std::string> cells);
  // Of the row that was added last. REQUIRES: there is one.
  void SetTone(Tone tone);
  // A line of dashes before the next row (text only).
  void AddRule();
  size_t rows() const { return rows_.size(); }

  // Two spaces between columns. When the terminal is narrow, spare columns are left out (a line
  // below says which), then the widest left-aligned columns are cut.
  std::string Text(const TableStyle& style = {}) const;
  // Cells as report/text/escape.h makes them safe in Markdown and CSV (RFC 4180, "\n" line ends).
  std::string Markdown() const;
  std::string Csv() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool rule_before = false;
    Tone tone = Tone::kPlain;
  };
  std::vector<size_t> NaturalWidths(const TableStyle& style) const;
  // Of the columns that are shown; 0 for those without text and those that are left out, whose
  // names go to `spared`.
  std::vector<size_t> Widths(const TableStyle& style, std::vector<std::string>& spared) const;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  bool rule_pending_ = false;
};

// One CSV field without hidden characters (report/text/escape.h), quoted when it has to be.
// Spreadsheets take what begins with = + - @ for a formula: such text gets an apostrophe in front
// unless it is a number, which may have a unit (owasp.org/www-community/attacks/CSV_Injection).
std::string CsvField(std::string_view text);

}  // namespace daydream
