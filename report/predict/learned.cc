#include "report/predict/learned.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "report/fields.h"
#include "report/predict/intervals.h"

namespace daydream {
namespace {

constexpr double kPriorRows = 2;
// A day: no step is longer.
constexpr int64_t kLongest = int64_t{86400} * 1'000'000'000;

absl::Status Bad(std::string_view file, size_t line, std::string what) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0110",
                     .what = std::move(what),
                     .where = fmt::format("{}:{}", file, line),
                     .fix = "remove the line, or begin a new file with --learn"});
}

bool ReadTime(std::string_view text, Duration& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.ns);
  return error == std::errc() && end == text.data() + text.size() && out.ns > 0 &&
         out.ns <= kLongest;
}

// --learn keeps nothing that is further off, and never did.
constexpr double kMostOff = 10;
bool Believable(const LearnedRow& row) {
  const double ratio = static_cast<double>(row.measured.ns) / static_cast<double>(row.predicted.ns);
  return ratio <= kMostOff && ratio >= 1 / kMostOff;
}

bool SamePair(const LearnedRow& a, const LearnedRow& b) {
  return a.opts == b.opts && a.device == b.device && a.before == b.before &&
         a.measured == b.measured && a.source == b.source;
}

}  // namespace

std::string FormatLearnedRow(const LearnedRow& row) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}", Field(row.opts), Field(row.device), row.before.ns,
                     row.predicted.ns, row.measured.ns, Field(row.source));
}

absl::StatusOr<std::vector<LearnedRow>> ParseLearned(std::string_view text, std::string_view file) {
  std::vector<LearnedRow> rows;
  size_t number = 0;
  for (std::string_view line : Split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (++number == 1) {
      if (line == kLearnedHeader) continue;
      bool other = line.starts_with("daydream-learned ");
      return Bad(file, 1,
                 other ? fmt::format("'{}' is a version that this program does not know",
                                     line.substr(0, 40))
                       : "this file was not written by --learn");
    }
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string_view> fields = Split(line, '\t');
    if (fields.size() != 6) {
      return Bad(file, number, fmt::format("{} fields instead of 6", fields.size()));
    }
    LearnedRow row{.opts = std::string(fields[0]),
                   .device = std::string(fields[1]),
                   .before = {},
                   .predicted = {},
                   .measured = {},
                   .source = std::string(fields[5])};
    if (row.opts.empty() || !ReadTime(fields[2], row.before) ||
        !ReadTime(fields[3], row.predicted) || !ReadTime(fields[4], row.measured)) {
      return Bad(file, number, "not three times in ns behind names of optimizations");
    }
    if (!Believable(row)) {
      return Bad(file, number, "measured and predicted are more than ten times apart");
    }
    std::erase_if(rows, [&](const LearnedRow& other) { return SamePair(row, other); });
    rows.push_back(std::move(row));
  }
  return rows;
}

Correction CorrectionFor(std::span<const LearnedRow> rows, std::string_view opts,
                         std::string_view device, double prior) {
  std::vector<double> errors;
  for (const LearnedRow& row : rows) {
    if (row.opts != opts || row.device != device) continue;
    errors.push_back(static_cast<double>(row.measured.ns) / static_cast<double>(row.predicted.ns) -
                     1);
  }
  Correction c{.rows = errors.size(), .share = 0, .sigma = prior};
  if (errors.empty()) return c;
  const double weight = kPriorRows + static_cast<double>(errors.size());
  for (double r : errors) c.share += r / weight;
  double sum = kPriorRows * prior * prior;
  for (double r : errors) sum += (r - c.share) * (r - c.share);
  c.sigma = std::sqrt(sum / weight);
  const bool inside = std::all_of(errors.begin(), errors.end(),
                                  [&](double r) { return std::fabs(r) <= kNinety * prior; });
  if (inside) c.sigma = std::min(c.sigma, prior);
  return c;
}

}  // namespace daydream
