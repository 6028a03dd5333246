#include "report/html/assumptions_block.h"

#include <set>
#include <string_view>

#include <fmt/format.h>

#include "report/text/json_writer.h"
#include "transforms/core/transform.h"

namespace daydream {
namespace {

struct Assumed {
  std::string_view param, help;
  std::string source, value, range;
  bool given = false;
};

// What the user may choose and did not is a default.
std::string SourceOf(const ParamSpec& spec, bool given) {
  constexpr std::string_view kChosen = "chosen by the user";
  std::string_view source = spec.source;
  if (given || !source.starts_with(kChosen)) return std::string(source);
  source.remove_prefix(kChosen.size());
  return fmt::format("a default, yours to choose{}", source);
}

std::vector<Assumed> AssumedBy(const Application& a) {
  std::vector<Assumed> rows;
  for (const ParamSpec& spec : a.transform->params) {
    const bool text = spec.unit == Unit::kText;
    Assumed row{.param = spec.name,
                .help = spec.help,
                .source = SourceOf(spec, a.params.given(spec.name)),
                .value = {},
                .range = {},
                .given = a.params.given(spec.name)};
    row.value =
        text ? std::string(a.params.text(spec.name)) : FormatValue(a.params[spec.name], spec.unit);
    if (!text && !row.given && spec.low < spec.high) {
      row.range = fmt::format("{} to {}", FormatValue(spec.low, spec.unit),
                              FormatValue(spec.high, spec.unit));
    }
    rows.push_back(std::move(row));
  }
  if (!a.transform->sources.empty()) {
    rows.push_back({.param = {},
                    .help = a.transform->summary,
                    .source = std::string(a.transform->sources),
                    .value = {},
                    .range = {}});
  }
  return rows;
}

}  // namespace

std::string AssumptionsJson(std::span<const std::vector<Application>> scenarios) {
  std::set<std::string> said;
  JsonWriter json;
  json.BeginArray();
  for (const std::vector<Application>& scenario : scenarios) {
    for (const Application& a : scenario) {
      for (const Assumed& row : AssumedBy(a)) {
        if (!said.insert(fmt::format("{} {}={}", a.transform->name, row.param, row.value)).second) {
          continue;
        }
        json.BeginInlineObject().Key("opt").String(a.transform->name);
        json.Key("param").String(row.param).Key("value").String(row.value);
        json.Key("given").Bool(row.given).Key("range").String(row.range);
        json.Key("help").String(row.help).Key("source").String(row.source).EndObject();
      }
    }
  }
  json.EndArray();
  return json.Take() + "\n";
}

}  // namespace daydream
