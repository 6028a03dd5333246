#include "tools/output/answer_diff.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "tools/input/json_path.h"
#include "tools/input/saved_json.h"
#include "tools/output/prediction_text.h"

namespace daydream {
namespace {

constexpr SavedKind kSavedAnswer = {
    .what = "prediction", .fix = "daydream whatif TRACE --opt SPEC --format json -o FILE.json"};
constexpr size_t kMostCauses = 10'000;   // of one scenario
constexpr size_t kMostScenarios = 1000;  // of one file

// A whole number of nanoseconds, as JsonWriter writes it.
std::optional<int64_t> WholeAt(const std::string& json, std::string_view path) {
  const absl::StatusOr<std::string> text = AtJsonPath(json, path);
  if (!text.ok() || text->empty()) return std::nullopt;
  char* end = nullptr;
  const int64_t value = std::strtoll(text->c_str(), &end, 10);
  if (*end != '\0' || std::llabs(value) > (int64_t{1} << 61)) return std::nullopt;
  return value;
}

std::optional<double> DecimalAt(const std::string& json, std::string_view path) {
  const absl::StatusOr<std::string> text = AtJsonPath(json, path);
  if (!text.ok() || text->empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (*end != '\0' || !(value > -1e12 && value < 1e12)) return std::nullopt;
  return value;
}

std::string TextAt(const std::string& json, std::string_view path) {
  return AtJsonPath(json, path).value_or("");
}

std::optional<Duration> MillisecondsAt(const std::string& json, std::string_view path) {
  const std::optional<double> ms = DecimalAt(json, path);
  if (!ms.has_value()) return std::nullopt;
  return Duration::FromDouble(*ms * 1e6);
}

Duration BeyondA(const AnswerDiff::Row& r) { return r.b - r.a; }

Table AnswerTable(const AnswerDiff& d, size_t top, TimeUnit wish) {
  Table table({{"", Align::kLeft},
               {"", Align::kLeft},
               {fmt::format("A: {}", Printable(d.a.name))},
               {fmt::format("B: {}", Printable(d.b.name))},
               {"B - A"}});
  const TimeUnit unit = UnitFor(std::max(d.a.baseline, d.b.baseline), wish);
  const auto change = [&](Duration x) { return x.ns == 0 ? "" : FormatChange(x, unit); };
  table.AddRow({"step", "", FormatTime(d.a.step, unit), FormatTime(d.b.step, unit),
                change(d.b.step - d.a.step)});
  if (d.a.step != d.b.step) {
    table.SetTone(d.b.step < d.a.step ? Tone::kBetter : Tone::kWorse);
  }
  table.AddRow({"90 % interval", "", RangeText(d.a.low, d.a.high, unit),
                RangeText(d.b.low, d.b.high, unit),
                !d.overlap.has_value() ? ""
                : *d.overlap           ? "they overlap"
                                       : "apart"});
  table.AddRow({"speed-up", "", FormatSpeedup(d.a.speedup), FormatSpeedup(d.b.speedup), ""});
  table.AddRow({"confidence", "", d.a.confidence, d.b.confidence, ""});
  table.AddRule();
  const auto add = [&](const AnswerDiff::Row& r) {
    const auto cell = [&](Duration x) { return x.ns == 0 ? "" : FormatChange(x, unit); };
    table.AddRow({Printable(r.what), Printable(r.opt), cell(r.a), cell(r.b), change(BeyondA(r))});
  };
  table.AddRow({"baseline", "", FormatTime(d.a.baseline, unit), FormatTime(d.b.baseline, unit),
                change(d.b.baseline - d.a.baseline)});
  const size_t shown = d.causes.size() <= top + 1 ? d.causes.size() : top;
  AnswerDiff::Row rest{fmt::format("[{} others]", d.causes.size() - shown), "", {}, {}};
  for (size_t i = 0; i < d.causes.size(); ++i) {
    if (i < shown) add(d.causes[i]);
    if (i < shown) continue;
    rest.a += d.causes[i].a;
    rest.b += d.causes[i].b;
  }
  if (shown < d.causes.size()) add(rest);
  table.AddRule();
  table.AddRow({"all", "", FormatTime(d.a.step, unit), FormatTime(d.b.step, unit),
                change(d.b.step - d.a.step)});
  return table;
}

// What a reader has to know before comparing.
std::string BaselineRemark(const AnswerDiff& d, TimeUnit wish) {
  if (d.a.baseline == d.b.baseline) {
    return "one recording: what its replay is off by is the same on both sides\n";
  }
  return fmt::format(
      "the baselines differ by {}: these are two recordings\n",
      FormatTime(std::max(d.a.baseline - d.b.baseline, d.b.baseline - d.a.baseline), wish));
}

void WriteSide(const SavedAnswer& a, JsonWriter& json) {
  json.BeginInlineObject().Key("source").String(a.source).Key("name").String(a.name);
  json.Key("baseline_ns").Int(a.baseline.ns).Key("step_ns").Int(a.step.ns);
  json.Key("interval_ns");
  if (a.low.has_value() && a.high.has_value()) {
    json.BeginInlineArray().Int(a.low->ns).Int(a.high->ns).EndArray();
  } else {
    json.Null();
  }
  json.Key("speedup").Rounded(a.speedup, 6).Key("confidence").String(a.confidence).EndObject();
}

}  // namespace

SavedAnswer AnswerOf(std::string source, const WhatIf& result, const Prediction& p) {
  SavedAnswer a{.source = std::move(source),
                .name = p.name,
                .baseline = result.predictions[0].step,
                .step = p.step,
                .low = p.low,
                .high = p.high,
                .speedup = p.speedup,
                .confidence = p.bound ? "a limit" : std::string(Name(p.confidence)),
                .causes = {}};
  for (const CauseShare& c : p.causes) {
    a.causes.push_back({c.what, std::string(OptOf(c)), c.delta});
  }
  return a;
}

bool IsSavedAnswer(const std::string& path) { return IsSavedJson(path, "daydream.whatif/1"); }

absl::StatusOr<SavedAnswer> ReadAnswer(const std::string& path) {
  DD_ASSIGN_OR_RETURN(const std::string json, ReadSavedJson(path, kSavedAnswer));
  const std::vector<std::string> scenarios = ElementsAtJsonPath(json, "scenarios", kMostScenarios);
  const std::optional<int64_t> main = WholeAt(json, "main");
  if (!main.has_value() && TextAt(json, "interrupted") == "true") {
    return NotSaved(path, kSavedAnswer, "it was interrupted before its last scenario");
  }
  if (!main.has_value() || *main < 0 || static_cast<size_t>(*main) >= scenarios.size()) {
    return NotSaved(path, kSavedAnswer, "it is not an answer about one trace");
  }
  const std::string& scenario = scenarios[static_cast<size_t>(*main)];
  const auto baseline = WholeAt(scenarios[0], "step_ns"), step = WholeAt(scenario, "step_ns");
  if (!baseline.has_value() || !step.has_value()) {
    return NotSaved(path, kSavedAnswer, "its last scenario could not be predicted");
  }
  SavedAnswer a{.source = path, .name = TextAt(scenario, "name"), .baseline = {}, .step = {}};
  a.baseline = Duration::Ns(*baseline);
  a.step = Duration::Ns(*step);
  a.low = MillisecondsAt(scenario, "interval_ms.0");
  a.high = MillisecondsAt(scenario, "interval_ms.1");
  a.speedup = DecimalAt(scenario, "speedup").value_or(0);
  a.confidence = TextAt(scenario, "bound") == "true" ? "a limit" : TextAt(scenario, "confidence");
  for (const std::string& cause : ElementsAtJsonPath(scenario, "causes", kMostCauses)) {
    a.causes.push_back({TextAt(cause, "what"), TextAt(cause, "opt"),
                        Duration::Ns(WholeAt(cause, "delta_ns").value_or(0))});
  }
  return a;
}

AnswerDiff CompareAnswers(SavedAnswer a, SavedAnswer b) {
  AnswerDiff out{.a = std::move(a), .b = std::move(b)};
  std::map<std::pair<std::string, std::string>, AnswerDiff::Row> rows;
  for (const SavedAnswer* side : {&out.a, &out.b}) {
    for (const SavedAnswer::Cause& c : side->causes) {
      AnswerDiff::Row& row = rows[{c.what, c.opt}];
      row.what = c.what;
      row.opt = c.opt;
      (side == &out.a ? row.a : row.b) += c.delta;
    }
  }
  for (auto& [key, row] : rows) out.causes.push_back(std::move(row));
  std::stable_sort(out.causes.begin(), out.causes.end(), [](const auto& x, const auto& y) {
    return std::llabs(BeyondA(x).ns) > std::llabs(BeyondA(y).ns);
  });
  if (out.a.low.has_value() && out.a.high.has_value() && out.b.low.has_value() &&
      out.b.high.has_value()) {
    out.overlap = *out.a.low <= *out.b.high && *out.b.low <= *out.a.high;
  }
  return out;
}

std::string AnswerDiffText(const AnswerDiff& diff, size_t top, const Session& session) {
  return AnswerTable(diff, top, session.unit()).Text(session.table_style()) + "  " +
         BaselineRemark(diff, session.unit());
}

std::string AnswerDiffMarkdown(const AnswerDiff& diff, size_t top, const Session& session) {
  return AnswerTable(diff, top, session.unit()).Markdown() + "\n" +
         BaselineRemark(diff, session.unit());
}

std::string AnswerDiffJson(const AnswerDiff& diff) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.whatif_diff/1").Key("a");
  WriteSide(diff.a, json);
  json.Key("b");
  WriteSide(diff.b, json);
  json.Key("intervals_overlap");
  diff.overlap.has_value() ? json.Bool(*diff.overlap) : json.Null();
  json.Key("causes").BeginArray();
  for (const AnswerDiff::Row& r : diff.causes) {
    json.BeginInlineObject().Key("what").String(r.what).Key("opt").String(r.opt);
    json.Key("a_ns").Int(r.a.ns).Key("b_ns").Int(r.b.ns).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string AnswerDiffCsv(const AnswerDiff& diff) {
  Table table({{"what", Align::kLeft}, {"opt", Align::kLeft}, {"a_ns"}, {"b_ns"}});
  const auto add = [&](const std::string& what, const std::string& opt, Duration a, Duration b) {
    table.AddRow({what, opt, fmt::format("{}", a.ns), fmt::format("{}", b.ns)});
  };
  add("baseline", "", diff.a.baseline, diff.b.baseline);
  add("step", "", diff.a.step, diff.b.step);
  for (const AnswerDiff::Row& r : diff.causes) add(r.what, r.opt, r.a, r.b);
  return table.Csv();
}

}  // namespace daydream
