#include "tests/accuracy/judged.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/ranges.h>

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

// The end of 90 % of the errors of these groups, each of which counts as much as the others.
double EndOfErrors(std::span<const ResidualGroup* const> groups) {
  std::vector<double> ends;
  for (const ResidualGroup* g : groups) ends.insert(ends.end(), g->errors);
  std::sort(ends.begin(), ends.end());
  for (double end : ends) {
    double shares = 0;
    for (const ResidualGroup* g : groups) {
      const auto below = std::ranges::upper_bound(g->errors, end) - g->errors.begin();
      shares += static_cast<double>(below) / static_cast<double>(g->errors.size());
    }
    if (shares >= 0.9 * static_cast<double>(groups.size())) return end;
  }
  return 0;
}

// "34 of 39": rows of a kind that the errors of its other groups alone would have held.
std::string InsideOfMeasuredErrors(std::string_view kind) {
  std::vector<const ResidualGroup*> groups;
  for (const ResidualGroup& g : Residuals()) {
    if (g.kind == kind && g.errors.size() > 0) groups.push_back(&g);
  }
  size_t inside = 0, rows = 0;
  for (const ResidualGroup* judged : groups) {
    std::vector<const ResidualGroup*> others = groups;
    std::erase(others, judged);
    const auto* held = std::ranges::upper_bound(judged->errors, EndOfErrors(others));
    inside += static_cast<size_t>(held - judged->errors.begin());
    rows += judged->errors.size();
  }
  return fmt::format("{} of {}", inside, rows);
}

struct Errors {
  double signed_sum = 0, sum = 0, worst = 0;
  void Add(double error) {
    signed_sum += error, sum += std::fabs(error), worst = std::max(worst, std::fabs(error));
  }
};

std::string InsideText(const Coverage& c) {
  if (c.intervals == 0) return "";
  return fmt::format("{} of {}, {:.0f} %", c.inside, c.intervals,
                     100.0 * static_cast<double>(c.inside) / static_cast<double>(c.intervals));
}

std::string TableLine(const std::string& head, const Rows& rows) {
  Errors errors;
  Coverage coverage;
  for (const JudgedRow* r : rows) {
    errors.Add(r->error());
    coverage.Add(*r);
  }
  const auto n = static_cast<double>(rows.size());
  return fmt::format("| {} | {} | {:.1f} | {:+.1f} | {:.1f} | {} |\n", head, rows.size(),
                     100 * errors.sum / n, 100 * errors.signed_sum / n, 100 * errors.worst,
                     InsideText(coverage));
}

constexpr std::string_view kColumns =
    "rows | mean error, % | on average, % | worst, % | inside |\n";

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
  std::map<std::string, Rows> kinds;
  Rows all;
  for (const JudgedRow& r : rows) {
    if (!r.why.empty()) continue;
    kinds[r.kind].push_back(&r);
    all.push_back(&r);
  }
  std::string table = fmt::format("| kind | {}|---|---|---|---|---|---|\n", kColumns);
  for (const auto& [kind, members] : kinds) table += TableLine(kind, members);
  return table + TableLine("all", all);
}

std::string OutsideOfBars(std::span<const JudgedRow> rows) {
  constexpr size_t kTellsSomething = 10;  // nine or ten of so many are inside of a good interval
  std::map<std::string, std::vector<JudgedRow>> kinds;
  for (const JudgedRow& r : rows) {
    if (r.why.empty()) kinds[r.kind].push_back(r);
  }
  std::vector<std::string> few, outside;
  for (const auto& [kind, members] : kinds) {
    const Coverage c = CoverageOf(members);
    if (c.intervals < kTellsSomething) {
      few.push_back(kind);
      continue;
    }
    if (100 * c.inside >= 80 * c.intervals && 100 * c.inside <= 97 * c.intervals) continue;
    const auto lost = std::ranges::count_if(members, [](const JudgedRow& r) {
      return ErrorOf(r.kind, r.before, r.predicted, r.measured) < 0;
    });
    outside.push_back(fmt::format("*{}* ({} of {}", kind, c.inside, c.intervals));
    outside.back() += fmt::format("; by measured errors alone {}", InsideOfMeasuredErrors(kind));
    if (lost > 0) outside.back() += fmt::format("; the change of {} is lost between runs", lost);
    outside.back() += ")";
  }
  return fmt::format(
      "\nBetween 80 and 97 % are asked for. Kinds with fewer than {} rows cannot show it: {}.\n"
      "Outside of it: {}.\n"
      "Why so many: a kind has two to six groups, and an interval is for a further one, so that\n"
      "two groups of published errors, which are larger, count beside those that were measured\n"
      "(`kPriorGroups` of `report/predict/residuals.h`). *By measured errors alone*: what the\n"
      "errors of their other groups would have held; one row of forty makes 2.5 %.\n",
      kTellsSomething, fmt::join(few, "; "),
      outside.empty() ? "none" : fmt::format("{}", fmt::join(outside, ", ")));
}

std::string GroupTable(std::span<const JudgedRow> rows) {
  std::string table = fmt::format("| kind | group | {}|---|---|---|---|---|---|---|\n", kColumns);
  for (const auto& [key, members] : ByGroup(rows)) {
    table += TableLine(fmt::format("{} | {}", key.first, key.second), members);
  }
  return table;
}

std::string RowsAsCsv(std::span<const JudgedRow> rows) {
  std::string text =
      "kind,group,row,scenario,before_ms,predicted_ms,low_ms,high_ms,measured_ms,why\n";
  auto quoted = [](const std::string& field) {
    return field.find(',') == std::string::npos ? field : '"' + field + '"';
  };
  for (const JudgedRow& r : rows) {
    auto number = [](std::optional<double> v) { return v ? fmt::format("{:.6g}", *v) : ""; };
    text += fmt::format("{},{},{},{},{:.6g},{:.6g},{},{},{:.6g},{}\n", quoted(r.kind),
                        quoted(r.group), quoted(r.row), quoted(r.scenario), r.before, r.predicted,
                        number(r.low), number(r.high), r.measured, quoted(r.why));
  }
  return text;
}

}  // namespace daydream
