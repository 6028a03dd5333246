#include "tests/accuracy/published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "report/predict/error_kind.h"
#include "report/predict/intervals.h"
#include "report/predict/residuals.h"
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
  std::string word;  // for how sure it is
  std::string kind;  // of the error of what was asked about
};

// What a row asks about: of `to`, the first that `from` has not, or else the first.
absl::StatusOr<Application> AskedOf(const PublishedRow& row) {
  DD_ASSIGN_OR_RETURN(std::vector<Application> to, ParseScenario(row.to));
  std::vector<Application> from;
  if (!row.from.empty()) {
    DD_ASSIGN_OR_RETURN(from, ParseScenario(row.from));
  }
  const auto is_new = [&](const Application& a) {
    return std::ranges::none_of(from,
                                [&](const Application& b) { return b.transform == a.transform; });
  };
  const auto first = std::ranges::find_if(to, is_new);
  return first != to.end() ? *first : to.front();
}

// Times and sizes of what a scenario makes of a trace, as far as `row` asks. Sizes have no
// interval.
absl::StatusOr<Cost> CostOf(const Loaded& loaded, const std::string& scenario,
                            const PublishedRow& row, bool limits_hold) {
  std::vector<std::vector<Application>> scenarios;
  if (!scenario.empty()) {
    DD_ASSIGN_OR_RETURN(std::vector<Application> parsed, ParseScenario(scenario));
    scenarios.push_back(std::move(parsed));
  }
  std::vector<std::string> left_out = row.kin;
  left_out.push_back(row.group);
  // Both sides of a published gain ran on one host, whatever it is to the recorded one.
  DD_ASSIGN_OR_RETURN(WhatIf result, PredictAll(loaded.built, loaded.replay, scenarios,
                                                {.alone = false,
                                                 .explain = false,
                                                 .limits_hold = limits_hold,
                                                 .profiled_alike = true,
                                                 .left_out = std::move(left_out)}));
  const Prediction& p = result.predictions[scenarios.empty() ? 0 : result.main];
  DD_RETURN_IF_ERROR(p.error);
  DD_ASSIGN_OR_RETURN(const Application asked, AskedOf(row));
  Cost cost{.value = p.step.seconds(),
            .word = std::string(Name(p.confidence)),
            .kind = ErrorKindOf(asked, loaded.built.graph, p.changes.terms).main()};
  if (row.unit != "GB") {
    if (p.low && p.high) cost.low = p.low->seconds(), cost.high = p.high->seconds();
    return cost;
  }
  if (!p.peak || p.peak->unknown) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0601", .what = "peak memory not known"});
  }
  cost.value = p.peak->peak;
  return cost;
}

bool HasLimit(const std::string& scenario) {
  if (scenario.empty()) return false;
  const auto parsed = ParseScenario(scenario);
  return parsed.ok() &&
         std::ranges::any_of(*parsed, [](const Application& a) { return a.transform->bound; });
}

// The row as the step of so many examples as before: of another batch, the step itself.
JudgedRow AsJudged(const PublishedRow& row, const Cost& changed, const PredictedGain& gain) {
  const double before = row.unit == "rate" ? 1000 / row.before : row.before;
  const double more = changed.kind.starts_with("batch") ? row.examples : 1;
  return {.kind = changed.kind,
          .row = row.name,
          .group = row.group,
          .kin = row.kin,
          .scenario = row.changed(),
          .before = before,
          .predicted = more * before / gain.gain,
          .measured = more * before / row.gain(),
          .low = more * before / gain.high,
          .high = more * before / gain.low,
          .word = changed.word,
          .origin = RowOrigin::kPublished,
          .stands_in = row.stands_in};
}

// What a gain of this size may be off by, as a factor: the model of what is asked about, and the
// other program where the trace is of one, without the rows of the same groups. The interval of the
// scenario as a whole has what each of its parts makes of the recorded step, which is not the one
// before the change that was published.
double OffBy(const PublishedRow& row, const Cost& changed, double gain) {
  std::vector<std::string> left_out = row.kin;
  left_out.push_back(row.group);
  double sigma = ModelErrorOf(changed.kind, left_out).sigma;
  if (row.stands_in) sigma = std::max(sigma, ModelErrorOf(kAnotherProgram, left_out).sigma);
  const double step = changed.kind.starts_with("batch") ? row.examples / gain : 1 / gain;
  return 1 + kNinety * std::hypot(sigma * DoseOf(changed.kind, 1, step), kRunToRun);
}

// A limit that brings the trace nearer holds of the published program; one that is asked about has
// no interval. By the trace of this row. A change that finds nothing to do is no gain. The interval
// is that of what the change leads to, and no narrower than OffBy() says; what it starts from
// counts as known.
void Predict(const Loaded& loaded, PublishedResult& result) {
  const PublishedRow& row = result.row;
  const bool hold = !HasLimit(row.from) && !HasLimit(row.to);
  const absl::StatusOr<Cost> base = CostOf(loaded, row.base(), row, hold);
  const absl::StatusOr<Cost> changed = CostOf(loaded, row.changed(), row, hold);
  if (!base.ok() || !changed.ok()) {
    const absl::Status status = base.ok() ? changed.status() : base.status();
    const bool nothing = base.ok() && DiagnosticOf(status).code == "E0601";
    if (!nothing) result.predicted = status;
    return;
  }
  const double most = row.examples * base->value;
  result.predicted = PredictedGain{most / changed->value, 0, 0};
  if (changed->low <= 0) return;
  const double gain = result.predicted->gain, off = OffBy(row, *changed, gain);
  result.predicted->low = std::min(most / changed->high, gain / off);
  result.predicted->high = std::max(most / changed->low, gain * off);
  result.judged = AsJudged(row, *changed, *result.predicted);
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

void Add(Section& section, const PublishedResult& result) {
  const PublishedRow& row = result.row;
  const absl::StatusOr<PredictedGain>& predicted = result.predicted;
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
    f.resize(std::max<size_t>(f.size(), 14));
    PublishedRow row{.name = f[0],
                     .trace = f[1],
                     .nearer = f[2],
                     .from = f[3],
                     .to = f[4],
                     .unit = f[7],
                     .source = f[9],
                     .why = f[12],
                     .differs = f[13],
                     .stands_in = f[11] == "yes"};
    row.kin = absl::StrSplit(f[10], " + ");
    row.group = row.kin.front();
    row.kin.erase(row.kin.begin());
    const bool numbers = absl::SimpleAtod(f[5], &row.before) &&
                         absl::SimpleAtod(f[6], &row.after) &&
                         absl::SimpleAtod(f[8], &row.examples) && row.before > 0 && row.after > 0;
    const bool told = f[11].empty() || row.stands_in;
    const bool unit = row.unit == "ms" || row.unit == "rate" || row.unit == "GB";
    if (f.size() > 14 || !numbers || !unit || !told) {
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

absl::StatusOr<std::vector<PublishedResult>> JudgePublished(const fs::path& traces,
                                                            const fs::path& csv) {
  DD_ASSIGN_OR_RETURN(std::vector<PublishedRow> rows, ReadPublished(csv));
  std::vector<PublishedResult> results;
  std::map<std::string, absl::StatusOr<Loaded>> loaded;
  for (PublishedRow& row : rows) {
    PublishedResult& result = results.emplace_back(PublishedResult{.row = std::move(row)});
    if (!result.row.judged()) continue;
    auto [it, inserted] = loaded.try_emplace(result.row.trace, absl::UnknownError("not loaded"));
    if (inserted) it->second = Load(traces / result.row.trace);
    if (it->second.ok())
      Predict(*it->second, result);
    else
      result.predicted = it->second.status();
  }
  return results;
}

std::vector<JudgedRow> JudgedRows(std::span<const PublishedResult> results) {
  std::vector<JudgedRow> rows;
  for (const PublishedResult& r : results) {
    if (r.row.judged() && r.has_interval()) rows.push_back(r.judged);
  }
  return rows;
}

std::string PublishedSection(std::span<const PublishedResult> results) {
  Section section;
  for (const PublishedResult& r : results) {
    if (r.row.judged()) {
      Add(section, r);
    } else {
      section.not_judged += fmt::format("* {} ({}): {:.2f}x. {}.\n", r.row.name, r.row.source,
                                        r.row.gain(), r.row.why);
    }
  }
  std::string text =
      "\n## Published figures without traces\n\n"
      "Predicted from the trace at hand whose shape is closest: another program on another "
      "machine.\n"
      "Where the published description tells a batch, a GPU or a bound that the trace\n"
      "does not have, a scenario on both sides brings the trace nearer. Trace and scenario follow "
      "from\n"
      "the description, not from the outcome. Where the trace is of another network (a \"yes\" in "
      "the file), the\ninterval knows what such predictions of other programs were off by; others "
      "count in the intervals of\ntheir kind. What was changed after a first run, and why, is in\n"
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
