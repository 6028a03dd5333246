#include <algorithm>
#include <cmath>

#include "report/text/escape.h"
#include "report/text/format.h"
#include "tools/output/findings_text.h"
#include "tools/output/markdown.h"
#include "tools/output/memory_text.h"
#include "tools/output/prediction_text.h"
#include "tools/output/whatif_output.h"

namespace daydream {
namespace {

constexpr size_t kBreakdownRows = 15;
constexpr double kWorthColour = 0.005;  // a smaller change reads 1.00x

Table ScenarioTable(const WhatIf& result, TimeUnit wish, bool headed = false) {
  const bool memory = result.memory.known();
  const bool intervals = std::ranges::any_of(
      result.predictions, [](const Prediction& p) { return p.error.ok() && p.low.has_value(); });
  // A step that handles twice the examples is no loss for taking longer.
  const bool other_work = std::ranges::any_of(
      result.predictions, [](const Prediction& p) { return p.throughput_gain != p.speedup; });
  std::vector<Column> columns = {{"scenario", Align::kLeft}, {"step time"}};
  if (intervals) columns.push_back({"90 % interval"});
  columns.push_back({"speed-up"});
  if (intervals) columns.push_back({headed ? "90 % of it" : "", Align::kLeft, 2});
  if (other_work) columns.push_back({"throughput"});
  if (memory) columns.push_back({"peak memory", Align::kRight, 1});
  columns.push_back({"confidence", Align::kLeft});
  Table table(columns);
  Duration baseline = result.predictions[0].step;
  TimeUnit unit = UnitFor(baseline, wish);
  for (const Prediction& p : result.predictions) {
    if (!p.error.ok()) {
      std::vector<std::string> row = {p.name, "-"};
      if (intervals) row.emplace_back();
      row.emplace_back("-");
      if (intervals) row.emplace_back();
      if (other_work) row.emplace_back();
      if (memory) row.emplace_back();
      row.emplace_back("cannot be predicted");
      table.AddRow(std::move(row));
      table.SetTone(Tone::kWorse);
      continue;
    }
    std::vector<std::string> row = {p.name, FormatTime(p.step, unit)};
    if (intervals) row.push_back(IntervalText(p, unit));
    row.push_back(SpeedupText(p));
    if (intervals) row.push_back(SpeedupRange(p));
    if (other_work) row.push_back(FormatSpeedup(p.throughput_gain));
    if (memory) row.push_back(p.peak.has_value() ? PeakText(result.memory, *p.peak) : "not known");
    row.push_back(p.bound ? "a limit" : std::string(Name(p.confidence)));
    table.AddRow(std::move(row));
    if (std::abs(p.throughput_gain - 1) > kWorthColour) {
      table.SetTone(p.throughput_gain > 1 ? Tone::kBetter : Tone::kWorse);
    }
  }
  return table;
}

// Why the interval of a speed-up is not that of its step, where `table` shows both and they differ.
std::string WhyTwoIntervals(const WhatIf& result, std::string_view table, TimeUnit wish) {
  constexpr double kSeen = 0.02;
  const Prediction& base = result.predictions[0];
  const double before = base.step.seconds();
  const auto differ = [&](const Prediction& p) {
    if (!p.error.ok() || !p.low || !p.least_speedup || p.low->ns <= 0) return false;
    if (table.find(SpeedupRange(p)) == std::string_view::npos) return false;
    return std::abs(before / p.high->seconds() / *p.least_speedup - 1) > kSeen ||
           std::abs(before / p.low->seconds() / *p.most_speedup - 1) > kSeen;
  };
  if (!std::ranges::any_of(result.predictions, differ)) return "";
  std::string text =
      "a speed-up has an interval of its own: what steps differ by, and what a profiler may have "
      "added to the host, is in the step before as well as in the step after";
  const std::optional<Duration> least = base.over_quick_host;
  if (least && base.step - *least > base.step.Scaled(kSeen)) {
    text += fmt::format("; without the most that it may have added the baseline takes {}, too",
                        FormatTime(*least, UnitFor(base.step, wish)));
  }
  return Wrapped(text);
}

// How the gains of the parts of a combination overlap.
std::string Overlap(const WhatIf& result, TimeUnit wish) {
  const Prediction& main = result.predictions[result.main];
  Duration baseline = result.predictions[0].step, sum;
  if (main.opts.size() < 2 || !main.error.ok()) return "";
  size_t found = 0;
  for (const std::string& opt : main.opts) {
    for (const Prediction& p : result.predictions) {
      if (p.opts.size() != 1 || p.opts[0] != opt || !p.error.ok()) continue;
      sum += baseline - p.step;
      ++found;
      break;
    }
  }
  if (found != main.opts.size()) return "";
  const auto words = [&](Duration saved) {
    const bool less = saved >= Duration{};
    return fmt::format("{} {}", less ? "save" : "cost",
                       FormatTime(less ? saved : Duration{} - saved, UnitFor(baseline, wish)));
  };
  return fmt::format("  one by one they {} in sum; together they {}\n", words(sum),
                     words(baseline - main.step));
}

Table BreakdownTable(const WhatIfReport& report, TimeUnit wish) {
  // Resources are parts of the critical path, which have no GPU work of their own.
  const bool work = report.by != "resource";
  std::vector<Column> columns = {{report.by, Align::kLeft}};
  if (work) columns.insert(columns.end(), {{"GPU before"}, {"after"}, {"change"}});
  columns.insert(columns.end(), {{"path before"}, {"after"}, {"change"}});
  Table table(std::move(columns));
  TimeUnit unit = UnitFor(report.result.predictions[0].step, wish);
  BreakdownRow rest{.name = "", .before = {}, .after = {}, .path_before = {}, .path_after = {}};
  BreakdownRow all = rest;
  auto add = [](BreakdownRow& to, const BreakdownRow& r) {
    to.before += r.before;
    to.after += r.after;
    to.path_before += r.path_before;
    to.path_after += r.path_after;
  };
  auto show = [&](const BreakdownRow& r) {
    std::vector<std::string> cells = {Printable(r.name)};
    auto change = [&](Duration before, Duration after) {
      for (Duration d : {before, after}) cells.push_back(FormatTime(d, unit));
      cells.push_back(FormatChange(after - before, unit));
    };
    if (work) change(r.before, r.after);
    change(r.path_before, r.path_after);
    table.AddRow(std::move(cells));
  };
  const auto& rows = report.breakdown;
  size_t shown = rows.size() <= kBreakdownRows + 1 ? rows.size() : kBreakdownRows;
  for (size_t i = 0; i < rows.size(); ++i) {
    add(all, rows[i]);
    if (i < shown)
      show(rows[i]);
    else
      add(rest, rows[i]);
  }
  if (shown < rows.size()) {
    rest.name = fmt::format("[{} others]", rows.size() - shown);
    show(rest);
  }
  table.AddRule();
  all.name = "all";
  show(all);
  return table;
}

// What the rows of a breakdown are.
std::string MeansText(const WhatIfReport& report) {
  return fmt::format("means over {}",
                     Plural(std::max<size_t>(report.result.replay.steps, 1), "step"));
}

std::string MissTable(const Score& s, TimeUnit unit) {
  if (s.misses.empty()) return "";
  Table table({{"largest misses, GPU time per step", Align::kLeft},
               {"", Align::kLeft},
               {"predicted"},
               {"measured"},
               {"miss"}});
  for (const Miss& m : s.misses) {
    std::string word = m.before.ns == 0 ? "new" : m.measured.ns == 0 ? "gone" : "";
    table.AddRow({fmt::format("{} {}", m.by, Printable(m.name)), word,
                  FormatTime(m.predicted, unit), FormatTime(m.measured, unit),
                  FormatChange(m.predicted - m.measured, unit)});
  }
  return "\n" + table.Text();
}

std::string ScoreText(const WhatIfReport& report, TimeUnit wish) {
  if (!report.score.has_value()) return "";
  const Score& s = *report.score;
  const Prediction& p = report.result.predictions[report.result.main];
  TimeUnit unit = UnitFor(s.measured, wish);
  std::string interval = IntervalText(p, unit);
  std::string out = fmt::format(
      "\n  {}   predicted {}{}   measured {}   error {}   {}\n    measured in {}\n", p.name,
      FormatTime(p.step, unit), interval.empty() ? "" : fmt::format(" ({})", interval),
      FormatTime(s.measured, unit), FormatSignedPercent(s.error),
      interval.empty() ? ""
      : s.inside       ? "inside interval"
                       : "OUTSIDE interval",
      Printable(s.headline));
  return out + MissTable(s, unit);
}

}  // namespace

std::string WhatIfText(const WhatIfReport& report, const Session& session) {
  const WhatIf& result = report.result;
  const TimeUnit wish = session.unit();
  std::string out =
      ReplayLine(report.headline, report.result.replay, wish, session.table_style().max_width) +
      "\n";
  out += FindingsText(report.findings);
  if (!result.replay.no_step.ok()) return out;
  const std::string table = ScenarioTable(result, wish).Text(session.table_style());
  out += table + NotDoneLines(report.missing) + WhyTwoIntervals(result, table, wish) +
         Overlap(result, wish);
  const Prediction& main = result.predictions[result.main];
  if (result.main > 0 && main.error.ok()) {
    if (report.by == "cause") {
      const TimeUnit unit = UnitFor(result.predictions[0].step, wish);
      std::string causes = CauseTable(main, unit, session.table_style());
      if (!causes.empty()) out += "\n" + causes;
    } else if (!report.missing.Lacks("--by")) {
      out += fmt::format("\n  {}, {}\n", main.name, MeansText(report));
      out += BreakdownTable(report, wish).Text(session.table_style());
    }
    out += BoundByLine(main) + MemoryLine(result.memory, main) + WhyNotLines(main);
  }
  return out + ScoreText(report, wish);
}

namespace {

// What the gates were asked of.
std::string JudgedMarkdown(const Prediction& p, TimeUnit wish) {
  const std::string name = MarkdownText(p.name);
  if (!p.error.ok()) return fmt::format("{}: {}", name, MarkdownText(DiagnosticOf(p.error).what));
  return fmt::format("{}: {}, {}", name, FormatTime(p.step, wish), SpeedupText(p));
}

}  // namespace

std::string WhatIfMarkdown(const WhatIfReport& report, const Session& session) {
  const WhatIf& result = report.result;
  const TimeUnit wish = session.unit();
  std::string out =
      VerdictMarkdown(report.gates, result.main_done
                                        ? JudgedMarkdown(result.predictions[result.main], wish)
                                        : std::string(kLastNotDone)) +
      LinesMarkdown(ReplayLine(MarkdownText(report.headline), result.replay, wish)) + "\n" +
      FindingsMarkdown(report.findings) + ScenarioTable(result, wish, true).Markdown() +
      NotDoneMarkdown(report.missing);
  const Prediction& main = result.predictions[result.main];
  if (report.by == "cause" && !main.causes.empty()) {
    out += "\n" + CauseRows(main, UnitFor(result.predictions[0].step, wish), true).Markdown();
  }
  if (report.by != "cause" && !report.missing.Lacks("--by")) {
    out += fmt::format("\n{}\n\n{}", MeansText(report), BreakdownTable(report, wish).Markdown());
  }
  const std::string score = ScoreText(report, wish);
  return score.empty() ? out : out + "\n```text" + score + "```\n";
}

}  // namespace daydream
