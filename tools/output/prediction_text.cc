#include "tools/output/prediction_text.h"

#include <algorithm>
#include <cmath>

#include "report/step_lengths.h"
#include "report/text/table.h"
#include "report/text/unit_word.h"
#include "tools/output/describe.h"

namespace daydream {
namespace {

constexpr size_t kBarWidth = 20, kLeastBarWidth = 5;  // shorter ones tell nothing
constexpr size_t kRowsShown = 15;
// Causes below this share of the largest are shown together.
constexpr double kSmallestRow = 0.002;
// A whole bar is at least this share of the step: where nothing changes, no bar says otherwise.
constexpr double kLeastBar = 0.005;

constexpr double kShownShare = 0.005;  // of the path; less reads 0 %
constexpr double kWorthAWarning = 0.03, kPredictsNothing = 0.10;

// Four digits, or all of a large number: "4.648", "10,160".
std::string Rate(double v) {
  return v >= 1000 ? FormatCount(static_cast<uint64_t>(std::llround(v))) : fmt::format("{:.4g}", v);
}

// What the furthest of all checks says about the replay; `one` is that of the worst step.
std::string_view WordFor(double worst, double one) {
  if (worst > kPredictsNothing) return "checks fail";
  if (worst > kWorthAWarning) return "checks are doubtful";
  return one > kPredictsNothing ? "checks hold in the mean, not for each step" : "checks hold";
}

}  // namespace

std::string SpeedupText(const Prediction& p) {
  if (!std::isfinite(p.speedup)) return "no limit";
  return (p.bound ? "<= " : "") + FormatSpeedup(p.speedup);
}

std::string SpeedupRange(const Prediction& p) {
  if (!p.least_speedup.has_value() || !std::isfinite(*p.most_speedup)) return "";
  return fmt::format("({:.2f} - {:.2f})", *p.least_speedup, *p.most_speedup);
}

std::string RangeText(std::optional<Duration> low, std::optional<Duration> high, TimeUnit unit) {
  if (!low.has_value() || !high.has_value()) return "";
  const bool fine = unit == TimeUnit::kMs || unit == TimeUnit::kS;
  const int decimals = fine && high->ns < 10'000'000 ? 2 : 1;
  return fmt::format("{} - {} {}", TimeIn(*low, unit, decimals), TimeIn(*high, unit, decimals),
                     UnitName(unit));
}

std::string IntervalText(const Prediction& p, TimeUnit unit) {
  return RangeText(p.low, p.high, unit);
}

namespace {

Table CauseRowsWith(const Prediction& p, TimeUnit unit, bool headed, size_t bar_width) {
  Table table({{fmt::format("{}: where the time goes", p.name), Align::kLeft},
               {headed ? "option" : "", Align::kLeft},
               {"work"},
               {std::string("step, ") + std::string(UnitName(unit))},
               {headed ? "bar" : "", Align::kLeft, 1}});
  double largest = 0;
  for (const CauseShare& c : p.causes) largest = std::max(largest, std::fabs(c.delta.us()));
  Duration total, rest, rest_work;
  size_t shown = 0;
  const Duration smallest = Duration::FromDouble(largest * 1000 * kSmallestRow);
  auto signed_time = [&](Duration d) {
    std::string number = TimeIn(d, unit, 2), none = TimeIn(Duration{}, unit, 2);
    if (number == none || number == "-" + none) return none;  // too little to have a sign
    return d.ns > 0 ? "+" + number : number;
  };
  size_t others = 0;
  for (const CauseShare& c : p.causes) {
    total += c.delta;
    const Duration work = c.gpu + c.host;
    auto small = [&](Duration d) { return -smallest < d && d < smallest; };
    if (shown >= kRowsShown || (small(c.delta) && small(work))) {
      ++others;
      rest += c.delta;
      rest_work += work;
      continue;
    }
    ++shown;
    const double whole = std::max(largest, p.step.us() * kLeastBar);
    const double share = whole > 0 ? std::fabs(c.delta.us()) / whole : 0;
    auto length = static_cast<size_t>(std::lround(share * static_cast<double>(bar_width)));
    table.AddRow({Printable(c.what), std::string(OptOf(c)), work.ns == 0 ? "" : signed_time(work),
                  signed_time(c.delta), std::string(length, c.delta.ns > 0 ? '+' : '#')});
  }
  if (others > 0) {
    table.AddRow({others == 1 ? "[1 other]" : fmt::format("[{} others]", others), "",
                  signed_time(rest_work), signed_time(rest), ""});
  }
  table.AddRule();
  table.AddRow({"all", "", "", signed_time(total), ""});
  return table;
}

size_t WidestLine(std::string_view text) {
  size_t widest = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    widest = std::max(widest, DisplayWidth(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return widest;
}

}  // namespace

Table CauseRows(const Prediction& p, TimeUnit unit, bool headed) {
  return CauseRowsWith(p, unit, headed, kBarWidth);
}

std::string CauseTable(const Prediction& p, TimeUnit unit, const TableStyle& style) {
  if (p.causes.empty()) return "";
  // Whole sentences. Where they leave no room for bars these get shorter, and then are left out.
  size_t bars = kBarWidth;
  while (style.max_width > 0 && bars > 0 &&
         WidestLine(CauseRowsWith(p, unit, false, bars).Text()) > style.max_width) {
    bars = bars / 2 < kLeastBarWidth ? 0 : bars / 2;
  }
  return CauseRowsWith(p, unit, false, bars)
      .Text({.max_width = style.max_width, .color = style.color});
}

std::string BoundByText(const Prediction& p, std::string_view before) {
  Duration sum = p.path.gpu + p.path.cpu + p.path.comm + p.path.data;
  if (sum.ns <= 0) return "";
  std::vector<std::pair<Duration, std::string_view>> parts = {
      {p.path.gpu, "GPU"}, {p.path.cpu, "CPU"}, {p.path.comm, "comm"}, {p.path.data, "data"}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [d, name] : parts) {
    const double share = static_cast<double>(d.ns) / static_cast<double>(sum.ns);
    if (share < kShownShare) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, FormatPercent(share, 0));
  }
  return fmt::format("{}{}", before, text);
}

std::string SignedBytes(int64_t bytes) {
  auto size = static_cast<uint64_t>(bytes < 0 ? -bytes : bytes);
  return fmt::format("{}{}", bytes < 0 ? "-" : "+", FormatBytes(size));
}

std::string Wrapped(const std::string& text) {
  constexpr size_t kWidth = kProseWidth - 4;
  std::string out;
  size_t begin = 0;
  while (text.size() - begin > kWidth) {
    size_t end = text.rfind(' ', begin + kWidth);
    if (end == std::string::npos || end <= begin) break;
    // A number goes along with its unit.
    const std::string_view next = std::string_view(text).substr(end + 1);
    const size_t before = text.rfind(' ', end - 1);
    const bool number = text[end - 1] >= '0' && text[end - 1] <= '9';
    const bool splits = number && IsUnit(next.substr(0, next.find(' ')));
    if (splits && before != std::string::npos && before > begin) end = before;
    out += fmt::format("{}{}\n", begin == 0 ? "  " : "    ", text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out + fmt::format("{}{}\n", begin == 0 ? "  " : "    ", text.substr(begin));
}

std::string BoundByLine(const Prediction& p) {
  const std::string text = BoundByText(p, "  then bound by ");
  return text.empty() ? "" : text + "\n";
}

std::string ChecksLine(const ReplayCheck& r) {
  std::vector<std::string> parts;
  if (r.unexplained.value_or(0) >= 0.0005) {
    parts.push_back(fmt::format("{} of the step explained", FormatPercent(1 - *r.unexplained)));
  }
  double one = 0;
  auto add = [&](const std::optional<StepTest>& test, std::string_view what) {
    if (!test.has_value()) return;
    one = std::max(one, std::fabs(test->worst));
    std::string text = fmt::format("{} {}", what, FormatSignedPercent(test->error));
    if (test->steps > 1 && std::fabs(test->worst) > kWorthAWarning) {
      text +=
          fmt::format(" ({} {})", Printable(test->worst_step), FormatSignedPercent(test->worst));
    }
    if (test->runs.has_value()) {
      text += fmt::format(", {} in a row {}", test->runs->steps,
                          FormatSignedPercent(test->runs->error));
    }
    parts.push_back(std::move(text));
  };
  add(r.repeated, "each step by itself");
  add(r.crossed, "with the lags of the others");
  if (parts.empty()) {
    return r.steps <= 1 && r.no_step.ok() ? "  no other check can be made of one window\n" : "";
  }
  std::string line;
  for (const std::string& part : parts) line += (line.empty() ? "" : "; ") + part;
  return Wrapped(fmt::format("{}: {}", WordFor(r.worst().error, one), line));
}

std::string UnrecordedLine(const ReplayCheck& r) {
  return r.unrecorded.has_value() ? Wrapped(UnrecordedText(*r.unrecorded)) : "";
}

std::string StepsLine(const ReplayCheck& r, TimeUnit wish) {
  const Duration step = r.step();
  if (step.ns <= 0 || !r.no_step.ok()) return "";
  const double steps = 1 / step.seconds();
  std::string line = fmt::format("  {} steps/s", Rate(steps));
  if (r.step_name() != "step") {
    line = fmt::format("  {} {}: {} steps/s", r.step_name(), FormatTime(step, wish), Rate(steps));
  }
  if (r.batch.samples > 0) {
    line += fmt::format(", {} samples/s ({} a step)", Rate(steps * r.batch.samples),
                        Rate(r.batch.samples));
  }
  if (r.not_reached) {
    line +=
        "\n" + Wrapped(fmt::format("not the {} of --true-step: with a host that takes no time "
                                   "the GPU's part takes about as long, which recording may make "
                                   "up to a tenth longer, and is not changed",
                                   FormatTime(*r.not_reached, wish)));
    line.pop_back();
  }
  if (r.window && !r.given.has_value()) {
    return Wrapped(
        fmt::format("no marks say where a step begins: times are of the whole window; "
                    "if it holds one step,{}",
                    line.substr(1)));
  }
  const StepLengths l = LengthsOf(r.measured_steps);
  if (!l.uneven()) return line + "\n";
  const TimeUnit unit = UnitFor(r.measured, wish);
  return line + "\n" +
         Wrapped(fmt::format("{} differ: median {}, middle half {} to {}, all {} to {}",
                             r.steady || r.unrecorded || r.given ? "recorded steps" : "steps",
                             FormatTime(l.median, unit), TimeIn(l.lower, unit),
                             FormatTime(l.upper, unit), TimeIn(l.shortest, unit),
                             FormatTime(l.longest, unit))) +
         "  " + Sparkline(r.measured_steps) + "\n";
}

namespace {

// In lines of a terminal, all but the first indented.
std::string Folded(std::string_view headline) {
  const size_t word = std::min(headline.find(' '), headline.size() - 1) + 1;
  return Paragraph(headline.substr(0, word), headline.substr(word), 2);
}

}  // namespace

std::string ReplayLine(std::string_view headline, const ReplayCheck& r, TimeUnit wish,
                       size_t width) {
  if (!r.no_step.ok()) return Folded(headline) + "  no step, so that no replay can be checked\n";
  TimeUnit unit = UnitFor(r.measured, wish);
  std::string line =
      fmt::format("replay check: {} against {} measured ({}", FormatTime(r.simulated, unit),
                  FormatTime(r.measured, unit), FormatSignedPercent(r.error()));
  if (auto typical = r.typical_error()) {
    line += fmt::format("; {} with typical lags", FormatSignedPercent(*typical));
  }
  line += ")";
  constexpr std::string_view kBetween = "      ";
  const bool fits = width == 0 || DisplayWidth(headline) + kBetween.size() + line.size() <= width;
  std::string out =
      fits ? fmt::format("{}{}{}\n", headline, kBetween, line) : Folded(headline) + Wrapped(line);
  return out + ChecksLine(r) + UnrecordedLine(r) + StepsLine(r, wish);
}

std::string RaiseText(const Prediction& p) {
  return p.raise.empty() ? "" : "; to raise it: " + p.raise;
}

std::string WhyNotLines(const Prediction& p) {
  std::string out;
  if (!p.bound && !p.why.empty()) {
    out += Wrapped(
        fmt::format("confidence {}: {}{}", Name(p.confidence), Printable(p.why), RaiseText(p)));
  }
  if (p.why_not.has_value()) out += Wrapped(Printable(p.why_not->text));
  if (p.unchecked.has_value() && *p.unchecked >= 0.01) {
    out += fmt::format("  {} of the GPU time comes from kernels the model was never checked on\n",
                       FormatPercent(*p.unchecked, 0));
  }
  return out;
}

}  // namespace daydream
