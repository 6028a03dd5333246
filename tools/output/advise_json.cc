#include "report/text/format.h"
#include "report/text/table.h"
#include "tools/budget.h"
#include "tools/output/advise_output.h"
#include "tools/output/findings_text.h"

namespace daydream {
namespace {

void WriteOption(const AdviseReport& report, const Option& o, JsonWriter& json) {
  const Advice advice = AdviceFor(o.application.transform->advice, o.prediction.changes);
  json.BeginObject().Key("prediction");
  WritePrediction(o.prediction, json);
  if (o.prediction.error.ok()) {
    json.Key("saved_ns").Int((report.advised.baseline.step - o.prediction.step).ns);
  } else {
    json.Key("saved_ns").Null();
  }
  json.Key("effort").String(EffortOf(advice, o.prediction.changes)).Key("risk").String(advice.risk);
  json.Key("how").String(HowOf(advice, report.trace));
  json.Key("check").String(CheckCommand(report, {&o.application, 1}));
  if (!o.ways.empty()) {
    json.Key("other_ways").BeginArray();
    for (const Option& way : o.ways) WriteOption(report, way, json);
    json.EndArray();
  }
  json.EndObject();
}

void WriteOptions(const AdviseReport& report, std::string_view key,
                  const std::vector<Option>& options, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const Option& o : options) WriteOption(report, o, json);
  json.EndArray();
}

void WritePairs(const Advised& a, JsonWriter& json) {
  json.Key("pairs").BeginArray();
  for (const OptionPair& p : a.pairs) {
    json.BeginInlineObject().Key("a").String(a.worth[p.a].prediction.name);
    json.Key("b").String(a.worth[p.b].prediction.name).Key("step_ns");
    if (p.step.has_value()) {
      json.Int(p.step->ns).Key("extra_ns").Int(p.extra.ns);
    } else {
      json.Null().Key("why").String(p.reason);
    }
    json.EndObject();
  }
  json.EndArray();
}

void WriteBest(const AdviseReport& report, JsonWriter& json) {
  const Advised& a = report.advised;
  json.Key("best");
  if (!a.best.has_value()) {
    json.Null();
    return;
  }
  json.BeginObject().Key("prediction");
  WritePrediction(*a.best, json);
  json.Key("saved_ns").Int((a.baseline.step - a.best->step).ns);
  json.Key("check").String(CheckCommand(report, a.best_list));
  json.EndObject();
}

}  // namespace

std::string AdviseJson(const AdviseReport& report) {
  const Advised& a = report.advised;
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.advise/1");
  if (a.interrupted) json.Key("interrupted").Bool(true);
  if (report.ranks != nullptr) {
    WriteRanks(json, *report.ranks);
  } else {
    WriteTrace(*report.trace, report.trace->provenance.source, *report.build, json);
    json.Key("steps").UInt(a.replay.steps);
    WriteReplay(a.replay, json);
    WriteFindings(report.findings, json);
  }
  json.Key("baseline");
  WritePrediction(a.baseline, json);
  WriteOptions(report, "options", a.worth, json);
  WriteBest(report, json);
  WritePairs(a, json);
  if (report.ranks != nullptr) WriteOptions(report, "slowest_rank_mended", a.mended, json);
  WriteOptions(report, "limits", a.limits, json);
  WriteOptions(report, "not_worth", a.not_worth, json);
  WriteOptions(report, "nothing_to_change", a.nothing_here, json);
  WriteOptions(report, "not_judged", a.unjudged, json);
  json.Key("needs_a_value").BeginArray();
  for (const std::string& text : report.open) json.String(text);
  json.EndArray().Key("over_budget").BeginArray();
  for (const std::string& text : report.over_budget) json.String(text);
  json.EndArray().Key("per_example").Bool(report.per_example).EndObject();
  return json.Take() + "\n";
}

std::string AdviseCsv(const AdviseReport& report) {
  const Advised& a = report.advised;
  std::string out = "group,rank,option,metric,value\n";
  auto rows = [&](std::string_view group, size_t rank, const Prediction& p) {
    const std::string head = fmt::format("{},{},{}", group, rank, CsvField(p.name));
    if (!p.error.ok()) {
      out += fmt::format("{},error,{}\n", head, DiagnosticOf(p.error).code);
      return;
    }
    out += fmt::format("{},step_ns,{}\n", head, p.step.ns);
    out += fmt::format("{},saved_ns,{}\n", head, (a.baseline.step - p.step).ns);
    if (!p.low.has_value()) return;
    out += fmt::format("{},interval_low_ns,{}\n", head, p.low->ns);
    out += fmt::format("{},interval_high_ns,{}\n", head, p.high->ns);
  };
  auto group = [&](std::string_view name, const std::vector<Option>& options) {
    for (size_t i = 0; i < options.size(); ++i) {
      rows(name, i + 1, options[i].prediction);
      for (const Option& way : options[i].ways) rows("other_ways", i + 1, way.prediction);
    }
  };
  rows("baseline", 0, a.baseline);
  group("options", a.worth);
  if (a.best.has_value()) rows("best", 1, *a.best);
  group("limits", a.limits);
  group("not_worth", a.not_worth);
  group("nothing_to_change", a.nothing_here);
  group("not_judged", a.unjudged);
  return out;
}

}  // namespace daydream
