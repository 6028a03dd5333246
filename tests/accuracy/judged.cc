#include "tests/accuracy/judged.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/ranges.h>
#include <boost/math/distributions/binomial.hpp>

#include "report/predict/error_kind.h"
#include "report/predict/residuals.h"
#include "report/predict/what_if.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

using Rows = std::vector<const JudgedRow*>;

std::string ResidualLine(std::string_view kind, std::string_view group, bool composed, size_t rows,
                         double least, double most, std::span<const double> errors) {
  std::string line = fmt::format("RESIDUALS(\"{}\", \"{}\", {}, {}, {:.3f}, {:.3f}", kind, group,
                                 composed, rows, least, most);
  for (double e : errors) line += fmt::format(", {:.3f}", e);
  return line + ")\n";
}

// Predicted rows by kind and group.
std::map<std::pair<std::string, std::string>, Rows> ByGroup(std::span<const JudgedRow> rows) {
  std::map<std::pair<std::string, std::string>, Rows> groups;
  for (const JudgedRow& r : rows) {
    if (r.why.empty()) groups[{r.kind, r.group}].push_back(&r);
  }
  return groups;
}

// What the rows of a kind show of the share that is inside: as many independent rows as they count,
// and the exact 95 % interval of the share (Clopper and Pearson, of so many rows: Korn and
// Graubard, "Confidence Intervals for Proportions With Small Expected Number of Positive Counts",
// 1998).
struct Shown {
  double rows = 0, low = 0, high = 1;

  // Neither of the bars is outside of what may be true.
  bool nothing() const { return low <= kLeastInside && high >= kMostInside; }
};

Shown WhatIsShown(std::string_view kind, const Rows& rows) {
  std::vector<const ResidualGroup*> known;
  for (const ResidualGroup& g : Residuals()) {
    if (g.kind == kind && g.errors.size() > 0) known.push_back(&g);
  }
  const double alike = AlikeInGroups(known);
  std::map<std::string_view, double> groups;
  Coverage coverage;
  for (const JudgedRow* r : rows) ++groups[r->group], coverage.Add(*r);
  Shown shown;
  for (const auto& [group, n] : groups) shown.rows += RowsThatCount(n, alike);
  const double inside = shown.rows * coverage.share();
  using Binomial = boost::math::binomial_distribution<double>;
  shown.low = Binomial::find_lower_bound_on_p(shown.rows, inside, 0.025);
  shown.high = Binomial::find_upper_bound_on_p(shown.rows, inside, 0.025);
  return shown;
}

// Predicted rows by kind.
std::map<std::string, Rows> ByKind(std::span<const JudgedRow> rows) {
  std::map<std::string, Rows> kinds;
  for (const JudgedRow& r : rows) {
    if (r.why.empty()) kinds[r.kind].push_back(&r);
  }
  return kinds;
}

struct Errors {
  double signed_sum = 0, sum = 0, worst = 0;
  void Add(double error) {
    signed_sum += error, sum += std::fabs(error), worst = std::max(worst, std::fabs(error));
  }
};

std::string InsideText(const Coverage& c) {
  if (c.intervals == 0) return "";
  return fmt::format("{} of {}, {:.0f} %", c.inside, c.intervals, 100 * c.share());
}

std::string TableLine(const std::string& head, const Rows& rows) {
  Errors errors;
  Coverage coverage;
  for (const JudgedRow* r : rows) {
    errors.Add(r->error());
    coverage.Add(*r);
  }
  const auto n = static_cast<double>(rows.size());
  return fmt::format("| {} | {} | {:.1f} | {:+.1f} | {:.1f} | {} |", head, rows.size(),
                     100 * errors.sum / n, 100 * errors.signed_sum / n, 100 * errors.worst,
                     InsideText(coverage));
}

constexpr std::string_view kColumns = "rows | mean error, % | on average, % | worst, % | inside |";

}  // namespace

absl::StatusOr<Prediction> PredictRow(const BuiltGraph& built, const ReplayCheck& replay,
                                      const std::string& scenario, JudgedRow& row) {
  DD_ASSIGN_OR_RETURN(std::vector<Application> parsed, ParseScenario(scenario));
  std::vector<std::vector<Application>> scenarios = {parsed};
  DD_ASSIGN_OR_RETURN(WhatIf result,
                      PredictAll(built, replay, scenarios,
                                 {.alone = false, .explain = false, .left_out = row.group}));
  Prediction p = std::move(result.predictions[result.main]);
  DD_RETURN_IF_ERROR(p.error);
  row.kind = ErrorKindOf(parsed.back(), built.graph, p.changes.terms).main();
  row.before = replay.measured.ms();
  row.predicted = p.step.ms();
  row.word = Name(p.confidence);
  if (p.low && p.high) row.low = p.low->ms(), row.high = p.high->ms();
  return p;
}

std::string ResidualLines(std::span<const JudgedRow> rows) {
  std::string lines;
  for (const auto& [key, members] : ByGroup(rows)) {
    std::vector<double> errors;
    double least = INFINITY, most = 0;
    for (const JudgedRow* r : members) {
      least = std::min(least, std::fabs(r->error())), most = std::max(most, std::fabs(r->error()));
      const double e = ErrorOf(r->kind, r->before, r->predicted, r->measured);
      if (e >= 0) errors.push_back(e);
    }
    std::sort(errors.begin(), errors.end());
    lines += ResidualLine(key.first, key.second, members.front()->composed, members.size(), least,
                          most, errors);
  }
  return lines;
}

std::string KeptResidualLines() {
  std::string lines;
  for (const ResidualGroup& g : Residuals()) {
    lines += ResidualLine(g.kind, g.group, g.composed, g.rows, g.least, g.most,
                          std::vector<double>(g.errors));
  }
  return lines;
}

void Coverage::Add(const JudgedRow& row) {
  if (!row.low || !row.high) return;
  ++intervals;
  inside += row.inside() ? 1 : 0;
  below += row.measured < *row.low ? 1 : 0;
  above += row.measured > *row.high ? 1 : 0;
}

Coverage CoverageOf(std::span<const JudgedRow> rows) {
  Coverage coverage;
  for (const JudgedRow& r : rows) coverage.Add(r);
  return coverage;
}

std::string CoverageTable(std::span<const JudgedRow> rows) {
  Rows all;
  std::string table = fmt::format(
      "| kind | {} independent rows | may be, % |\n|---|---|---|---|---|---|---|---|\n", kColumns);
  for (const auto& [kind, members] : ByKind(rows)) {
    const Shown shown = WhatIsShown(kind, members);
    table += fmt::format("{} {:.1f} | {:.0f} to {:.0f} |\n", TableLine(kind, members), shown.rows,
                         100 * shown.low, 100 * shown.high);
    all.insert(all.end(), members.begin(), members.end());
  }
  return table + TableLine("all", all) + " | |\n";
}

std::string OutsideOfBars(std::span<const JudgedRow> rows) {
  std::vector<std::string> shown, silent, outside;
  for (const auto& [kind, members] : ByKind(rows)) {
    Coverage c;
    for (const JudgedRow* r : members) c.Add(*r);
    const bool good = c.share() >= kLeastInside && c.share() <= kMostInside;
    const bool telling = !WhatIsShown(kind, members).nothing();
    if (good)
      shown.push_back(kind);
    else
      (telling ? outside : silent)
          .push_back(fmt::format("{} ({} of {})", kind, c.inside, c.intervals));
  }
  const auto list = [](const std::vector<std::string>& kinds) {
    return kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, "; "));
  };
  return fmt::format(
      "\nBetween {:.0f} and {:.0f} % are asked for. Inside of that: {}.\n"
      "Outside of it: {}.\n"
      "Outside, but of too few rows to say so: {}.\n"
      "Rows of one group (a program, a network, a GPU) are wrong together: a group of n rows\n"
      "counts as n / (1 + (n - 1) r) *independent rows* (Kish's design effect; r: how alike\n"
      "errors within the groups of this kind are, their intraclass correlation), here and in\n"
      "the intervals. *May be*: the exact 95 % interval of the share that is inside (Clopper\n"
      "and Pearson, of so many rows). Where all of {:.0f} to {:.0f} % is in it, the rows\n"
      "cannot say that the kind is outside.\n",
      100 * kLeastInside, 100 * kMostInside, list(shown), list(outside), list(silent),
      100 * kLeastInside, 100 * kMostInside);
}

std::string GroupTable(std::span<const JudgedRow> rows) {
  std::string table = fmt::format("| kind | group | {}\n|---|---|---|---|---|---|---|\n", kColumns);
  for (const auto& [key, members] : ByGroup(rows)) {
    table += TableLine(fmt::format("{} | {}", key.first, key.second), members) + '\n';
  }
  return table;
}

std::string RowsAsCsv(std::span<const JudgedRow> rows) {
  std::string text =
      "kind,group,row,scenario,before_ms,predicted_ms,low_ms,high_ms,measured_ms,confidence,why\n";
  auto quoted = [](const std::string& field) {
    return field.find(',') == std::string::npos ? field : '"' + field + '"';
  };
  for (const JudgedRow& r : rows) {
    auto number = [](std::optional<double> v) { return v ? fmt::format("{:.6g}", *v) : ""; };
    text += fmt::format("{},{},{},{},{:.6g},{:.6g},{},{},{:.6g},{},{}\n", quoted(r.kind),
                        quoted(r.group), quoted(r.row), quoted(r.scenario), r.before, r.predicted,
                        number(r.low), number(r.high), r.measured, r.word, quoted(r.why));
  }
  return text;
}

}  // namespace daydream
