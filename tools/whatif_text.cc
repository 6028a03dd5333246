#include <algorithm>
#include <cmath>

#include "report/format.h"
#include "tools/whatif_output.h"

namespace daydream {
namespace {

constexpr size_t kBarWidth = 20;
constexpr size_t kRowsShown = 15;

std::string Speedup(const Prediction& p) {
  if (!std::isfinite(p.speedup)) return "no limit";
  return (p.bound ? "<= " : "") + FormatSpeedup(p.speedup);
}

std::string SpeedupRange(const Prediction& p, Duration baseline) {
  if (!p.low.has_value() || p.low->ns <= 0) return "";
  auto ratio = [&](Duration d) {
    return static_cast<double>(baseline.ns) / static_cast<double>(d.ns);
  };
  return fmt::format("({:.2f} - {:.2f})", ratio(*p.high), ratio(*p.low));
}

std::string Interval(const Prediction& p, TimeUnit unit) {
  if (!p.low.has_value()) return "";
  int decimals = unit == TimeUnit::kMs && p.high->ns < 10'000'000 ? 2 : 1;
  return fmt::format("{} - {} {}", TimeIn(*p.low, unit, decimals), TimeIn(*p.high, unit, decimals),
                     UnitName(unit));
}

Table ScenarioTable(const WhatIf& result) {
  Table table({{"scenario", Align::kLeft},
               {"step time"},
               {"90 % interval"},
               {"speed-up"},
               {"", Align::kLeft},
               {"confidence", Align::kLeft}});
  Duration baseline = result.predictions[0].step;
  TimeUnit unit = UnitFor(baseline);
  for (const Prediction& p : result.predictions) {
    if (!p.error.ok()) {
      table.AddRow({p.name, "-", "", "-", "", "cannot be predicted"});
      continue;
    }
    std::string word = p.bound ? "a limit" : std::string(Name(p.confidence));
    table.AddRow({p.name, FormatTime(p.step, unit), Interval(p, unit), Speedup(p),
                  SpeedupRange(p, baseline), word});
  }
  return table;
}

// How the gains of the parts of a combination overlap.
std::string Overlap(const WhatIf& result) {
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
  return fmt::format("  one by one they save {} in sum; together they save {}\n",
                     FormatTime(sum, UnitFor(baseline)),
                     FormatTime(baseline - main.step, UnitFor(baseline)));
}

std::string CauseTable(const Prediction& p, TimeUnit unit) {
  if (p.causes.empty()) return "";
  Table table({{fmt::format("{}: where the time goes", p.name), Align::kLeft},
               {"", Align::kLeft},
               {std::string(UnitName(unit))},
               {"", Align::kLeft}});
  double largest = 0;
  for (const CauseShare& c : p.causes) largest = std::max(largest, std::fabs(c.delta.us()));
  Duration total;
  size_t shown = 0;
  Duration rest;
  for (const CauseShare& c : p.causes) {
    total += c.delta;
    if (++shown > kRowsShown) {
      rest += c.delta;
      continue;
    }
    double share = largest > 0 ? std::fabs(c.delta.us()) / largest : 0;
    auto length = static_cast<size_t>(std::lround(share * kBarWidth));
    std::string number = TimeIn(c.delta, unit, 2);
    table.AddRow({Printable(c.what), c.opt, c.delta.ns > 0 ? "+" + number : number,
                  std::string(length, c.delta.ns > 0 ? '+' : '#')});
  }
  if (shown > kRowsShown) {
    table.AddRow({fmt::format("[{} others]", shown - kRowsShown), "", TimeIn(rest, unit, 2), ""});
  }
  table.AddRule();
  std::string number = TimeIn(total, unit, 2);
  table.AddRow({"all", "", total.ns > 0 ? "+" + number : number, ""});
  return table.Text();
}

std::string BoundByLine(const Prediction& p) {
  Duration sum = p.path.gpu + p.path.cpu + p.path.comm + p.path.data;
  if (sum.ns <= 0) return "";
  std::vector<std::pair<Duration, std::string_view>> parts = {
      {p.path.gpu, "GPU"}, {p.path.cpu, "CPU"}, {p.path.comm, "comm"}, {p.path.data, "data"}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [d, name] : parts) {
    if (d.ns == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        FormatPercent(static_cast<double>(d.ns) / static_cast<double>(sum.ns), 0));
  }
  return fmt::format("  now bound by {}\n", text);
}

Table BreakdownTable(const WhatIfReport& report) {
  Table table({{report.by, Align::kLeft},
               {"GPU before"},
               {"after"},
               {"change"},
               {"critical path before"},
               {"after"},
               {"change"}});
  TimeUnit unit = UnitFor(report.result.predictions[0].step);
  BreakdownRow rest{.name = "", .before = {}, .after = {}, .path_before = {}, .path_after = {}};
  BreakdownRow all = rest;
  auto add = [](BreakdownRow& to, const BreakdownRow& r) {
    to.before += r.before;
    to.after += r.after;
    to.path_before += r.path_before;
    to.path_after += r.path_after;
  };
  auto show = [&](const BreakdownRow& r) {
    table.AddRow({Printable(r.name), FormatTime(r.before, unit), FormatTime(r.after, unit),
                  FormatChange(r.after - r.before, unit), FormatTime(r.path_before, unit),
                  FormatTime(r.path_after, unit),
                  FormatChange(r.path_after - r.path_before, unit)});
  };
  const auto& rows = report.breakdown;
  size_t shown = rows.size() <= kRowsShown + 1 ? rows.size() : kRowsShown;
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

std::string ScoreText(const WhatIfReport& report) {
  if (!report.score.has_value()) return "";
  const Score& s = *report.score;
  const Prediction& p = report.result.predictions[report.result.main];
  TimeUnit unit = UnitFor(s.measured);
  std::string interval = Interval(p, unit);
  return fmt::format("\n  {}   predicted {}{}   measured {}   error {}   {}\n    measured in {}\n",
                     p.name, FormatTime(p.step, unit),
                     interval.empty() ? "" : fmt::format(" ({})", interval),
                     FormatTime(s.measured, unit), FormatSignedPercent(s.error),
                     interval.empty() ? ""
                     : s.inside       ? "inside interval"
                                      : "OUTSIDE interval",
                     Printable(s.headline));
}

}  // namespace

std::string ReplayLine(const WhatIfReport& report) {
  const ReplayCheck& r = report.result.replay;
  TimeUnit unit = UnitFor(r.measured);
  std::string line = fmt::format("{}      replay check: {} against {} measured ({}",
                                 report.headline, FormatTime(r.simulated, unit),
                                 FormatTime(r.measured, unit), FormatSignedPercent(r.error()));
  if (auto typical = r.typical_error()) {
    line += fmt::format("; {} with typical lags", FormatSignedPercent(*typical));
  }
  return line + ")\n";
}

std::string WhatIfText(const WhatIfReport& report, const Session& session) {
  const WhatIf& result = report.result;
  std::string out = ReplayLine(report) + "\n";
  out += ScenarioTable(result).Text(session.table_style());
  out += Overlap(result);
  const Prediction& main = result.predictions[result.main];
  if (result.main > 0 && main.error.ok()) {
    if (report.by == "cause") {
      std::string causes = CauseTable(main, UnitFor(result.predictions[0].step));
      if (!causes.empty()) out += "\n" + causes;
    } else {
      out += fmt::format("\n  {}, per step\n", main.name);
      out += BreakdownTable(report).Text(session.table_style());
    }
    out += BoundByLine(main);
  }
  return out + ScoreText(report);
}

std::string WhatIfMarkdown(const WhatIfReport& report) {
  std::string out = ReplayLine(report) + "\n" + ScenarioTable(report.result).Markdown();
  if (report.by != "cause") out += "\n" + BreakdownTable(report).Markdown();
  return out + ScoreText(report);
}

}  // namespace daydream
