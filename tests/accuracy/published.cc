#include "tests/accuracy/published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "absl/strings/numbers.h"
#include "tests/accuracy/loaded.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ';');) {
    const size_t begin = field.find_first_not_of(' ');
    const size_t end = field.find_last_not_of(' ');
    fields.push_back(begin == std::string::npos ? "" : field.substr(begin, end - begin + 1));
  }
  return fields;
}

std::string Together(std::string_view first, std::string_view second) {
  if (first.empty() || second.empty()) return fmt::format("{}{}", first, second);
  return fmt::format("{},{}", first, second);
}

struct Cost {
  double value = 0, low = 0, high = 0;
};

// Times and sizes of what a scenario makes of a trace, as far as `unit` asks. Sizes have no
// interval.
absl::StatusOr<Cost> CostOf(const Loaded& loaded, const std::string& scenario,
                            std::string_view unit, bool limits_hold) {
  const bool memory = unit == "GB";
  std::vector<std::vector<Application>> scenarios;
  if (!scenario.empty()) {
    DD_ASSIGN_OR_RETURN(std::vector<Application> parsed, ParseScenario(scenario));
    scenarios.push_back(std::move(parsed));
  }
  // Both sides of a published gain ran on one host, whatever it is to the recorded one.
  DD_ASSIGN_OR_RETURN(
      WhatIf result,
      PredictAll(
          loaded.built, loaded.replay, scenarios,
          {.alone = false, .explain = false, .limits_hold = limits_hold, .profiled_alike = true}));
  const Prediction& p = result.predictions[scenarios.empty() ? 0 : result.main];
  DD_RETURN_IF_ERROR(p.error);
  if (!memory) {
    if (!p.low || !p.high) return Cost{p.step.seconds(), 0, 0};
    return Cost{p.step.seconds(), p.low->seconds(), p.high->seconds()};
  }
  if (p.peak && !p.peak->unknown) return Cost{p.peak->peak, 0, 0};
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    {.code = "E0601", .what = "peak memory not known"});
}

bool HasLimit(const std::string& scenario) {
  if (scenario.empty()) return false;
  const auto parsed = ParseScenario(scenario);
  return parsed.ok() &&
         std::ranges::any_of(*parsed, [](const Application& a) { return a.transform->bound; });
}

// A limit that brings the trace nearer holds of the published program; one that is asked about has
// no interval. By the trace of this row. A change that finds nothing to do is no gain. The interval
// is that of what the change leads to; what it starts from counts as known.
absl::StatusOr<PredictedGain> Predict(const Loaded& loaded, const PublishedRow& row) {
  const bool hold = !HasLimit(row.from) && !HasLimit(row.to);
  DD_ASSIGN_OR_RETURN(const Cost base, CostOf(loaded, row.base(), row.unit, hold));
  absl::StatusOr<Cost> changed = CostOf(loaded, row.changed(), row.unit, hold);
  if (!changed.ok()) {
    if (DiagnosticOf(changed.status()).code == "E0601") return PredictedGain{};
    return changed.status();
  }
  const double most = row.examples * base.value;
  if (changed->low <= 0) return PredictedGain{most / changed->value, 0, 0};
  return PredictedGain{most / changed->value, most / changed->high, most / changed->low};
}

struct Section {
  std::string rows, differing, not_judged;
  std::array<size_t, 3> count = {};
  size_t predicted = 0, inside = 0;
  double error = 0;  // sum of what gains are off by
};

// A published value of the row, in its own unit and as `gain` makes it from the one before.
std::string After(const PublishedRow& row, double gain) {
  const double value = row.unit == "rate" ? row.before * gain : row.examples * row.before / gain;
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// The interval of that value: of a time, the larger gain is the lower end.
std::string Between(const PublishedRow& row, const PredictedGain& gain) {
  const bool rate = row.unit == "rate";
  return fmt::format("{} - {}", After(row, rate ? gain.low : gain.high),
                     After(row, rate ? gain.high : gain.low));
}

std::string Change(const PublishedRow& row) {
  return row.from.empty() ? fmt::format("`{}`", row.to)
                          : fmt::format("`{}` to `{}`", row.from, row.to);
}

// Worth a reason, also where the interval is wide enough to hold it.
bool IsFarOff(const PublishedRow& row, const PredictedGain& predicted) {
  const double off = predicted.gain / row.gain();
  return std::max(off, 1 / off) > 1.25;
}

void Add(Section& section, const PublishedRow& row,
         const absl::StatusOr<PredictedGain>& predicted) {
  constexpr std::string_view kVerdicts[] = {"agrees", "**direction only**", "**differs**"};
  std::string outcome = " | | ";
  Agreement agreement = Agreement::kDiffers;
  if (predicted.ok()) {
    agreement = Compare(row.gain(), *predicted);
    const double off = predicted->gain / row.gain() - 1;
    const bool inside = predicted->holds(row.gain()), sized = !predicted->has_interval();
    outcome = fmt::format("{}{} | {:+.1f} %{} | {:.2f}x, {} | ", After(row, predicted->gain),
                          sized ? "" : fmt::format(" ({})", Between(row, *predicted)), 100 * off,
                          sized    ? ""
                          : inside ? ", inside"
                                   : ", **outside**",
                          predicted->gain, SizeClass(predicted->gain));
    section.error += std::abs(off);
    section.predicted += sized ? 0 : 1;
    section.inside += !sized && inside ? 1 : 0;
  } else {
    outcome = fmt::format("{} | | | ", DiagnosticOf(predicted.status()).what);
  }
  ++section.count[static_cast<size_t>(agreement)];
  section.rows +=
      fmt::format("| {} ({}) | {} | {} | {} | {:g} {} to {:g} | {:.2f}x, {} | {}{} |\n", row.name,
                  row.source, row.trace.substr(0, row.trace.find(".json")),
                  row.nearer.empty() ? "" : fmt::format("`{}`", row.nearer), Change(row),
                  row.before, row.unit, row.after, row.gain(), SizeClass(row.gain()), outcome,
                  kVerdicts[static_cast<size_t>(agreement)]);
  if (agreement != Agreement::kAgrees || (predicted.ok() && IsFarOff(row, *predicted))) {
    const std::string gains =
        predicted.ok() ? fmt::format("{:.2f}x against {:.2f}x", predicted->gain, row.gain())
                       : "no prediction";
    section.differing += fmt::format("* {}, {}{}: {}.\n", row.name, gains,
                                     agreement == Agreement::kAgrees ? " (inside)" : "",
                                     row.differs.empty() ? "not explained yet" : row.differs);
  }
}

}  // namespace

double PublishedRow::gain() const {
  return unit == "rate" ? after / before : examples * before / after;
}

std::string PublishedRow::base() const { return Together(nearer, from); }
std::string PublishedRow::changed() const { return Together(nearer, to); }

absl::StatusOr<std::vector<PublishedRow>> ReadPublished(const fs::path& csv) {
  std::vector<PublishedRow> rows;
  std::ifstream in(csv);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> f = Fields(line);
    f.resize(std::max<size_t>(f.size(), 12));
    PublishedRow row{.name = f[0],
                     .trace = f[1],
                     .nearer = f[2],
                     .from = f[3],
                     .to = f[4],
                     .unit = f[7],
                     .source = f[9],
                     .why = f[10],
                     .differs = f[11]};
    const bool numbers = absl::SimpleAtod(f[5], &row.before) &&
                         absl::SimpleAtod(f[6], &row.after) &&
                         absl::SimpleAtod(f[8], &row.examples) && row.before > 0 && row.after > 0;
    const bool unit = row.unit == "ms" || row.unit == "rate" || row.unit == "GB";
    if (f.size() > 12 || !numbers || !unit) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: not a row", csv.string(), number));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string_view SizeClass(double gain) {
  const double change = gain >= 1 ? gain - 1 : 1 / std::max(gain, 1e-9) - 1;
  // Two recordings of the same program differ by as much.
  if (change < 0.05) return "none";
  if (change < 0.25) return gain > 1 ? "small gain" : "small loss";
  if (change < 0.75) return gain > 1 ? "medium gain" : "medium loss";
  return gain > 1 ? "large gain" : "large loss";
}

Agreement Compare(double published, const PredictedGain& predicted) {
  const bool agrees = predicted.has_interval() ? predicted.holds(published)
                                               : SizeClass(predicted.gain / published) == "none";
  if (agrees) return Agreement::kAgrees;
  const std::string_view theirs = SizeClass(published), ours = SizeClass(predicted.gain);
  const bool either_none = theirs == "none" || ours == "none";
  return !either_none && (published > 1) == (predicted.gain > 1) ? Agreement::kDirection
                                                                 : Agreement::kDiffers;
}

std::string PublishedSection(const fs::path& traces, const fs::path& csv) {
  absl::StatusOr<std::vector<PublishedRow>> rows = ReadPublished(csv);
  if (!rows.ok()) return fmt::format("\n{}\n", std::string(rows.status().message()));
  Section section;
  std::map<std::string, absl::StatusOr<Loaded>> loaded;
  for (const PublishedRow& row : *rows) {
    if (!row.judged()) {
      section.not_judged +=
          fmt::format("* {} ({}): {:.2f}x. {}.\n", row.name, row.source, row.gain(), row.why);
      continue;
    }
    auto [it, inserted] = loaded.try_emplace(row.trace, absl::UnknownError("not loaded"));
    if (inserted) it->second = Load(traces / row.trace);
    Add(section, row,
        it->second.ok() ? Predict(*it->second, row)
                        : absl::StatusOr<PredictedGain>(it->second.status()));
  }
  std::string text =
      "\n## Published figures without traces\n\n"
      "Predicted from the trace at hand whose shape is closest: another program on another "
      "machine.\n"
      "Where the published description tells a batch, a GPU or a bound that the trace\n"
      "does not have, a scenario on both sides brings the trace nearer. Trace and scenario follow "
      "from\n"
      "the description, not from the outcome; what was changed after a first run, and why, is in\n"
      "`tests/accuracy/published.csv`. *Predicted* is the published value before, changed by as "
      "much as the\n"
      "prediction changes the trace, with its 90 % interval; the error is that of the gain in "
      "examples a\n"
      "second. *Agrees*: the published value is inside of the interval; of a limit or of memory, "
      "which have\nnone, off by less than 5 %. *Direction only*: outside, and both gain or both "
      "lose. Sizes are named\nto be read (none: under 5 %, small: under 25 %, medium: under 75 %, "
      "large) and judge nothing.\n\n";
  const size_t all = section.count[0] + section.count[1] + section.count[2];
  text += fmt::format(
      "{} of {} predictions that have an interval (no limit is asked about) hold the published "
      "value; the mean error of a gain is "
      "{:.1f} %.\n{} of {} agree, {} in direction only, {} differ.\n\n",
      section.inside, section.predicted,
      100 * section.error / static_cast<double>(std::max<size_t>(all, 1)), section.count[0], all,
      section.count[1], section.count[2]);
  text +=
      "| published | trace | brought nearer by | scenario | before to after | gain | predicted "
      "after | error | predicted gain | |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  text += section.rows;
  if (!section.differing.empty())
    text += "\nWhere it is outside, or off by more than a quarter:\n\n" + section.differing;
  if (!section.not_judged.empty()) text += "\nNot judged:\n\n" + section.not_judged;
  return text;
}

}  // namespace daydream
