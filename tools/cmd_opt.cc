#include "graph/build.h"
#include "report/json_writer.h"
#include "report/table.h"
#include "tools/command.h"
#include "tools/describe.h"
#include "tools/input.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

constexpr Flag kFlags[] = {
    {.name = "--applicable",
     .value = "TRACE",
     .help = "with list: try each on this trace and say what it finds"},
};

std::string UnitText(Unit unit) {
  constexpr std::string_view kUnits[] = {"count", "factor",           "share", "ns",
                                         "bytes", "bytes per second", "text"};
  return std::string(kUnits[static_cast<size_t>(unit)]);
}

void WriteTransform(JsonWriter& json, const Transform& t) {
  json.BeginObject().Key("name").String(t.name).Key("summary").String(t.summary);
  json.Key("bound").Bool(t.bound).Key("params").BeginArray();
  for (const ParamSpec& spec : t.params) {
    json.BeginInlineObject().Key("name").String(spec.name).Key("unit").String(UnitText(spec.unit));
    json.Key("required").Bool(spec.required).Key("default");
    if (spec.unit == Unit::kText) {
      json.String(spec.text_fallback);
    } else {
      json.Double(spec.fallback).Key("low").Double(spec.low).Key("high").Double(spec.high);
      json.Key("min").Double(spec.min).Key("max").Double(spec.max);
    }
    json.Key("help").String(spec.help).Key("source").String(spec.source).EndObject();
  }
  json.EndArray().Key("model").String(t.model).Key("ignores").String(t.ignores);
  json.Key("sources").String(t.sources).EndObject();
}

// What trying `t` without arguments on `graph` gives: "yes", or why not.
std::string TryOn(const Transform& t, const Graph& graph) {
  for (const ParamSpec& spec : t.params) {
    if (spec.required) return fmt::format("needs {}=...", spec.name);
  }
  auto params = BindParams(t.name, t.params, {});
  if (!params.ok()) return DiagnosticOf(params.status()).what;
  Graph copy = graph;
  auto applied = Apply({&t, *std::move(params)}, copy);
  if (!applied.ok()) return "no: " + DiagnosticOf(applied.status()).what;
  const Changes& c = applied->changes;
  uint64_t tasks = c.scaled + c.set + c.inserted + c.removed + c.fused + c.moved;
  return fmt::format("yes: {} changes", tasks + c.edges);
}

absl::StatusOr<Exit> List(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(Format format, FormatOf(args));
  if (format == Format::kJson) {
    JsonWriter json;
    json.BeginObject().Key("schema").String("daydream.opts/1").Key("optimizations").BeginArray();
    for (const Transform* t : Transforms()) WriteTransform(json, *t);
    json.EndArray().EndObject();
    DD_RETURN_IF_ERROR(session.WriteResult(args, json.Take() + "\n"));
    return Exit::kOk;
  }
  absl::StatusOr<BuiltGraph> built = absl::UnknownError("");
  std::string path(args.Get("--applicable"));
  if (!path.empty()) {
    DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(path, args, session));
    built = BuildFor(trace, args);
    if (!built.ok()) return built.status();
  }
  std::vector<Column> columns = {
      {"optimization", Align::kLeft}, {"kind", Align::kLeft}, {"what it does", Align::kLeft}};
  if (built.ok()) columns[2] = {"in this trace", Align::kLeft};
  Table table(std::move(columns));
  for (const Transform* t : Transforms()) {
    table.AddRow({std::string(t->name), t->bound ? "limit" : "",
                  built.ok() ? TryOn(*t, built->graph) : std::string(t->summary)});
  }
  std::string text = format == Format::kCsv        ? table.Csv()
                     : format == Format::kMarkdown ? table.Markdown()
                                                   : table.Text({.indent = 0});
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  session.Next("daydream opt show amp");
  return Exit::kOk;
}

absl::StatusOr<Exit> Show(const std::string& name, const Args& args, Session& session) {
  const Transform* transform = FindTransform(name);
  if (transform == nullptr) {
    std::vector<std::string_view> names;
    for (const Transform* t : Transforms()) names.push_back(t->name);
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0102",
         .what = fmt::format("unknown optimization '{}'{}", name, DidYouMean(name, names)),
         .fix = "daydream opt list"});
  }
  DD_ASSIGN_OR_RETURN(Format format, FormatOf(args));
  std::string text = DescribeTransform(*transform);
  if (format == Format::kJson) {
    JsonWriter json;
    WriteTransform(json, *transform);
    text = json.Take() + "\n";
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  return Exit::kOk;
}

absl::StatusOr<Exit> Run(const Args& args, Session& session) {
  const auto& words = args.positional();
  if (words[0] == "list" && words.size() == 1) return List(args, session);
  if (words[0] == "show" && words.size() == 2) return Show(words[1], args, session);
  constexpr std::string_view kVerbs[] = {"list", "show"};
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0107",
       .what = fmt::format("daydream opt {}{}", words[0], DidYouMean(words[0], kVerbs)),
       .fix = "daydream opt list, or daydream opt show NAME"});
}

}  // namespace

extern const Command kOptCommand;
const Command kOptCommand = {
    .name = "opt",
    .summary = "the optimizations: list them, or show one with its parameters",
    .usage = "list [--applicable TRACE] | show NAME",
    .details = "",
    .examples =
        "daydream opt list\ndaydream opt list --applicable run.ddtrace\n"
        "daydream opt show amp",
    .flags = kFlags,
    .reads_traces = true,
    .writes_result = true,
    .min_inputs = 1,
    .max_inputs = 2,
    .run = Run,
};

}  // namespace daydream
