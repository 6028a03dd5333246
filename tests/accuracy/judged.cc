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

std::string ResidualLine(const ResidualGroup& g, std::span<const double> errors) {
  std::string line =
      fmt::format("RESIDUALS(\"{}\", \"{}\", {}, {}, {}, {}, {:.3f}, {:.3f}", g.kind, g.group,
                  g.recorded, g.composed, g.published, g.inside, g.least, g.most);
  for (double e : errors) line += fmt::format(", {:.3f}", e);
  return line + ")\n";
}

// Predicted rows by kind and group.
using Groups = std::map<std::pair<std::string, std::string>, Rows>;
Groups ByGroup(std::span<const JudgedRow> rows) {
  Groups groups;
  for (const JudgedRow& r : rows) {
    if (r.why.empty()) groups[{r.kind, r.group}].push_back(&r);
  }
  return groups;
}

// The same as report/predict/residuals.def has them: what stands in for another program tells
// nothing of its own kind.
Groups ByResiduals(std::span<const JudgedRow> rows) {
  Groups groups;
  for (const JudgedRow& r : rows) {
    const std::string kind = r.stands_in ? std::string(kAnotherProgram) : r.kind;
    if (r.why.empty()) groups[{kind, r.group}].push_back(&r);
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

Coverage InsideOf(const Rows& rows) {
  Coverage coverage;
  for (const JudgedRow* r : rows) coverage.Add(*r);
  return coverage;
}

double MeanError(const Rows& rows) {
  Errors errors;
  for (const JudgedRow* r : rows) errors.Add(r->error());
  return errors.sum / std::max<double>(1, static_cast<double>(rows.size()));
}

// A kind, and where every card has a line of its own, too, these: cards that clock down with heat,
// each by how it is cooled.
std::map<std::string, Rows> ByCard(std::string_view kind, const Rows& rows) {
  std::map<std::string, Rows> cards = {{"", rows}};
  if (!kind.starts_with("gpu, slot-powered")) return cards;
  for (const JudgedRow* r : rows) cards[": " + r->group].push_back(r);
  return cards;
}

// "6 | 15.2 | +5.7 | 6 of 6, 100 %", of published gains or of all others.
std::string OfOrigin(const Rows& rows, bool published) {
  Rows chosen;
  Errors errors;
  for (const JudgedRow* r : rows) {
    if ((r->origin == RowOrigin::kPublished) != published) continue;
    chosen.push_back(r), errors.Add(r->error());
  }
  if (chosen.empty()) return "| | |";
  const auto n = static_cast<double>(chosen.size());
  return fmt::format("{} | {:.1f} | {:+.1f} | {}", chosen.size(), 100 * errors.sum / n,
                     100 * errors.signed_sum / n, InsideText(InsideOf(chosen)));
}

std::string ByOrigin(std::string_view head, const Rows& rows) {
  return fmt::format("| {} | {} | {} | {} |", head, OfOrigin(rows, false), OfOrigin(rows, true),
                     InsideText(InsideOf(rows)));
}

std::string ShownText(const Shown& shown) {
  return fmt::format(" {:.1f} | {:.0f} to {:.0f} |\n", shown.rows, 100 * shown.low,
                     100 * shown.high);
}

constexpr std::string_view kColumns = "rows | mean error, % | on average, % | worst, % | inside |";

}  // namespace

absl::StatusOr<Prediction> PredictRow(const BuiltGraph& built, const ReplayCheck& replay,
                                      const std::string& scenario, JudgedRow& row) {
  DD_ASSIGN_OR_RETURN(std::vector<Application> parsed, ParseScenario(scenario));
  std::vector<std::vector<Application>> scenarios = {parsed};
  DD_ASSIGN_OR_RETURN(WhatIf result,
                      PredictAll(built, replay, scenarios,
                                 {.alone = false, .explain = false, .left_out = row.left_out()}));
  Prediction p = std::move(result.predictions[result.main]);
  DD_RETURN_IF_ERROR(p.error);
  row.kind = ErrorKindOf(parsed.back(), built.graph, p.changes.terms).main();
  row.before = replay.measured.ms();
  row.predicted = p.step.ms();
  row.word = Name(p.confidence);
  if (p.low && p.high) row.low = p.low->ms(), row.high = p.high->ms();
  return p;
}

std::vector<std::string> JudgedRow::left_out() const {
  std::vector<std::string> all = kin;
  all.push_back(group);
  return all;
}

std::string ResidualLines(std::span<const JudgedRow> rows) {
  std::string lines;
  for (const auto& [key, members] : ByResiduals(rows)) {
    std::vector<double> errors;
    ResidualGroup group{.kind = key.first, .group = key.second, .least = INFINITY, .most = 0};
    for (const JudgedRow* r : members) {
      const double off = std::fabs(r->error());
      group.least = std::min(group.least, off), group.most = std::max(group.most, off);
      group.recorded += r->origin == RowOrigin::kRecorded ? 1 : 0;
      group.composed += r->origin == RowOrigin::kComposed ? 1 : 0;
      group.published += r->origin == RowOrigin::kPublished ? 1 : 0;
      group.inside += r->inside() ? 1 : 0;
      const double e = ErrorOf(r->kind, r->before, r->predicted, r->measured);
      if (e >= 0) errors.push_back(e);
    }
    std::sort(errors.begin(), errors.end());
    lines += ResidualLine(group, errors);
  }
  return lines;
}

std::string KeptResidualLines() {
  std::string lines;
  for (const ResidualGroup& g : Residuals()) {
    lines += ResidualLine(g, std::vector<double>(g.errors));
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
  struct Line {
    double share, error;
    std::string text;
  };
  std::vector<Line> lines;
  Rows all;
  for (const auto& [kind, members] : ByKind(rows)) {
    all.insert(all.end(), members.begin(), members.end());
    for (const auto& [card, of_card] : ByCard(kind, members)) {
      lines.push_back({InsideOf(of_card).share(), MeanError(of_card),
                       ByOrigin(kind + card, of_card) + ShownText(WhatIsShown(kind, of_card))});
    }
  }
  std::ranges::stable_sort(lines, [](const Line& a, const Line& b) {
    return std::pair(a.share, -a.error) < std::pair(b.share, -b.error);
  });
  std::string table =
      "| kind | rows | mean error, % | on average, % | inside | published | mean error, % | on "
      "average, % | inside | all inside | independent rows | may be, % |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Line& line : lines) table += line.text;
  return table + ByOrigin("all", all) + " | |\n";
}

std::string OutsideOfBars(std::span<const JudgedRow> rows) {
  std::vector<std::string> shown, silent, outside;
  for (const auto& [kind, members] : ByKind(rows)) {
    const Coverage c = InsideOf(members);
    if (c.share() >= kLeastInside && c.share() <= kMostInside) {
      shown.push_back(kind);
    } else {
      (WhatIsShown(kind, members).nothing() ? silent : outside)
          .push_back(fmt::format("{} ({} of {})", kind, c.inside, c.intervals));
    }
  }
  const auto list = [](std::string_view what, const std::vector<std::string>& kinds) {
    return kinds.empty() ? "" : fmt::format("{}: {}.\n", what, fmt::join(kinds, "; "));
  };
  return fmt::format("\nBetween {:.0f} and {:.0f} % are asked for.\n", 100 * kLeastInside,
                     100 * kMostInside) +
         list("Outside of it", outside) +
         list("Outside of it, but of too few rows to say that the kind is", silent) +
         list("Inside of it", shown) +
         fmt::format(
             "Rows of one group (a program, a network, a GPU) are wrong together: a group of n "
             "rows\n"
             "counts as n / (1 + (n - 1) r) *independent rows* (Kish's design effect; r: how "
             "alike\n"
             "errors within the groups of this kind are, their intraclass correlation), here and "
             "in\n"
             "the intervals. *May be*: the exact 95 % interval of the share that is inside "
             "(Clopper\n"
             "and Pearson, of so many rows). Where all of {:.0f} to {:.0f} % is in it, the rows\n"
             "cannot say that the kind is outside.\n",
             100 * kLeastInside, 100 * kMostInside);
}

std::string WordTable(std::span<const JudgedRow> rows) {
  std::string table =
      "| word | rows | of them published | mean error, % | nine in ten within, % | inside |\n"
      "|---|---|---|---|---|---|\n";
  for (std::string_view word : {"high", "medium", "low"}) {
    Rows said;
    size_t published = 0;
    std::vector<double> errors;
    for (const JudgedRow& r : rows) {
      if (!r.why.empty() || r.word != word) continue;
      said.push_back(&r), errors.push_back(std::fabs(r.error()));
      published += r.origin == RowOrigin::kPublished ? 1 : 0;
    }
    if (said.empty()) {
      table += fmt::format("| {} | 0 | | | | |\n", word);
      continue;
    }
    std::ranges::sort(errors);
    table += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {} |\n", word, said.size(), published,
                         100 * MeanError(said), 100 * errors[(errors.size() * 9 - 1) / 10],
                         InsideText(InsideOf(said)));
  }
  return table;
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
