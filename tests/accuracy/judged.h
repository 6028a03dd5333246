// Predictions beside what was measured, and what they say together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace daydream {

struct BuiltGraph;   // graph/build.h
struct Prediction;   // report/predict/what_if.h
struct ReplayCheck;  // there, too

// Both sides recorded; put together from measured operators; a published gain, predicted from a
// trace of another program.
enum class RowOrigin : uint8_t { kRecorded, kComposed, kPublished };

struct JudgedRow {
  std::string kind;              // report/predict/error_kind.h
  std::string row;               // "bert_large-inf-512-8: V100 to T4"
  std::string group;             // left out as a whole when one of its rows is judged
  std::vector<std::string> kin;  // other groups that are left out, too
  std::string scenario;
  double before = 0, predicted = 0, measured = 0;  // ms
  std::optional<double> low, high;
  std::string why = {};   // not predicted: the reason
  std::string word = {};  // for its confidence; empty: it has none
  RowOrigin origin = RowOrigin::kRecorded;
  bool stands_in = false;  // predicted from the trace of another network

  bool inside() const { return low && high && *low <= measured && measured <= *high; }
  double error() const { return predicted / measured - 1; }
  std::vector<std::string> left_out() const;  // `group` and `kin`
};

// Fills in what `scenario` (with paths) is predicted to bring: the kind, the step before and after,
// the interval, which knows no row of the same group.
absl::StatusOr<Prediction> PredictRow(const BuiltGraph& built, const ReplayCheck& replay,
                                      const std::string& scenario, JudgedRow& row);

// The lines of report/predict/residuals.def for these rows, and the lines that it holds.
std::string ResidualLines(std::span<const JudgedRow> rows);
std::string KeptResidualLines();

struct Coverage {
  size_t intervals = 0, inside = 0, below = 0, above = 0;  // measured below or above the interval
  void Add(const JudgedRow& row);
  double share() const {
    return intervals == 0 ? 1 : static_cast<double>(inside) / static_cast<double>(intervals);
  }
};
// Of 90 % intervals this share of measured values should hold.
inline constexpr double kLeastInside = 0.80, kMostInside = 0.97;
Coverage CoverageOf(std::span<const JudgedRow> rows);

// A line for each kind, worst first: rows of recordings and composed steps beside published gains,
// what they show together, and one line for all. Slot-powered cards have a line each.
std::string CoverageTable(std::span<const JudgedRow> rows);
// The kinds that are between the bars, those that are not, and those of too few rows to say so.
std::string OutsideOfBars(std::span<const JudgedRow> rows);
// What predictions of each word of confidence were off by.
std::string WordTable(std::span<const JudgedRow> rows);
// A line for each kind and group.
std::string GroupTable(std::span<const JudgedRow> rows);
// Every row, comma-separated, with a head.
std::string RowsAsCsv(std::span<const JudgedRow> rows);

}  // namespace daydream
