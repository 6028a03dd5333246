// Measurements that others published, beside the repository: NeuSight (ASPLOS 2025) and dPRO (MLSys
// 2022). Tests that need them are skipped, visibly, without.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trace/bytes/source.h"

namespace daydream {

inline std::string CostdataFolder() { return DAYDREAM_DATA_DIR "/costdata/"; }
inline bool HasCostdata(const std::string& name) {
  return std::filesystem::exists(CostdataFolder() + name);
}

// One line of a table: column and value, in the order of the columns.
class CostRow : public std::vector<std::pair<std::string_view, std::string>> {
 public:
  const std::string& at(std::string_view column) const {
    for (const auto& [name, value] : *this) {
      if (name == column) return value;
    }
    DD_CHECK(false);
    return front().second;
  }
  double Number(std::string_view column) const { return std::stod(at(column)); }
  int64_t Whole(std::string_view column) const { return std::stoll(at(column)); }
};

inline std::vector<std::string> CsvCells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

// Calls `use` for each line of the table, plain or gzip.
inline void ForEachCostRow(const std::string& name,
                           const std::function<void(const CostRow&)>& use) {
  static std::deque<std::vector<std::string>> heads;  // rows point to them
  auto source = OpenFile(CostdataFolder() + name, int64_t{1} << 30);
  DD_CHECK(source.ok());
  std::string text;
  for (;;) {
    auto bytes = (*source)->Next();
    if (!bytes.ok() || bytes->empty()) break;
    text += *bytes;
  }
  std::istringstream in(text);
  const std::vector<std::string>* head = nullptr;
  for (std::string line; std::getline(in, line);) {
    auto cells = CsvCells(line);
    if (head == nullptr) {
      head = &heads.emplace_back(std::move(cells));
      continue;
    }
    CostRow row;
    for (size_t i = 0; i < head->size() && i < cells.size(); ++i) {
      row.emplace_back((*head)[i], std::move(cells[i]));
    }
    use(row);
  }
}

inline std::vector<CostRow> ReadCostTable(const std::string& name) {
  std::vector<CostRow> rows;
  ForEachCostRow(name, [&](const CostRow& row) { rows.push_back(row); });
  return rows;
}

// Relative errors of predictions.
struct CostErrors {
  double sum = 0, worst = 0, total_predicted = 0, total = 0;
  int n = 0;
  void Add(double predicted, double measured) {
    const double error = std::abs(predicted / measured - 1);
    sum += error, worst = std::max(worst, error), ++n;
    total_predicted += predicted, total += measured;
  }
  double mean() const { return 100 * sum / n; }
};

}  // namespace daydream
