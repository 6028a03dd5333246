#include <algorithm>

#include "graph/build.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "tools/command.h"
#include "tools/input/input.h"
#include "tools/input/scenarios.h"
#include "tools/output/answers.h"
#include "tools/output/describe.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr Flag kOptFlags[] = {
    {.name = "--applicable",
     .value = "TRACE",
     .help = "with list: try each on this trace and say what it finds"},
    {.name = "--opt-file",
     .value = "FILE",
     .help = "with list and show: also the optimization of this file",
     .repeats = true},
    {.name = "--trace",
     .value = "TRACE",
     .help = "with check: what each selector of the file matches in this trace"},
};

// The built-in optimizations, then those of --opt-file and of the folders of files.
absl::StatusOr<std::vector<const Transform*>> Known(const Args& args, OptionFiles& files,
                                                    Session& session) {
  for (const std::string& path : args.All("--opt-file")) {
    DD_RETURN_IF_ERROR(files.Load(path).status());
  }
  LoadFolders(files, session);
  std::vector<const Transform*> known(Transforms().begin(), Transforms().end());
  for (const auto& file : files.all()) known.push_back(&file->transform());
  return known;
}

std::string_view UnitText(Unit unit) {
  if (unit == Unit::kDuration) return "ns";
  if (unit == Unit::kBandwidth) return "bytes per second";
  return unit == Unit::kFlopRate ? "flops per second" : UnitName(unit);
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

absl::StatusOr<Exit> ListOptions(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(Format format, FormatOf(args));
  OptionFiles files(OptionFolders());
  DD_ASSIGN_OR_RETURN(std::vector<const Transform*> known, Known(args, files, session));
  if (format == Format::kJson) {
    JsonWriter json;
    json.BeginObject().Key("schema").String("daydream.opts/1").Key("optimizations").BeginArray();
    for (const Transform* t : known) WriteTransform(json, *t);
    json.EndArray().EndObject();
    DD_RETURN_IF_ERROR(session.WriteResult(args, json.Take() + "\n"));
    return Exit::kOk;
  }
  absl::StatusOr<BuiltGraph> built = absl::UnknownError("");
  std::string path(args.Get("--applicable"));
  if (!path.empty()) {
    DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(path, args, session));
    session.Progress("building the graph");
    built = BuildFor(trace, args);
    if (!built.ok()) return built.status();
  }
  std::vector<Column> columns = {
      {"optimization", Align::kLeft}, {"kind", Align::kLeft}, {"what it does", Align::kLeft}};
  if (built.ok()) columns[2] = {"in this trace", Align::kLeft};
  Table table(std::move(columns));
  std::vector<std::string> found;
  if (built.ok()) {
    TryEach(known.size(), session,
            [&](size_t i) { found.push_back(TryOn(*known[i], built->graph)); });
    session.EndProgress();
  }
  const size_t untried = built.ok() ? known.size() - found.size() : 0;
  found.resize(known.size(), "not tried");
  for (size_t i = 0; i < known.size(); ++i) {
    const Transform& t = *known[i];
    table.AddRow({std::string(t.name), t.bound ? "limit" : "",
                  built.ok() ? found[i] : std::string(t.summary)});
  }
  std::string text = format == Format::kCsv        ? table.Csv()
                     : format == Format::kMarkdown ? table.Markdown()
                                                   : table.Text({.indent = 0});
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  if (untried > 0) return EndUntried(untried, known.size(), session);
  session.Next("daydream opt show amp");
  return Exit::kOk;
}

absl::StatusOr<Exit> Show(const std::string& name, const Args& args, Session& session) {
  OptionFiles files(OptionFolders());
  DD_ASSIGN_OR_RETURN(std::vector<const Transform*> known, Known(args, files, session));
  const Transform* transform = FindTransform(name);
  if (transform == nullptr) {
    DD_ASSIGN_OR_RETURN(auto file, files.Find(name));
    if (file != nullptr) transform = &file->transform();
  }
  if (transform == nullptr) {
    std::vector<std::string_view> names;
    names.reserve(known.size());
    for (const Transform* t : known) names.push_back(t->name);
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

// FILE, or FILE(PARAM=VALUE,...).
absl::StatusOr<Application> ReadOption(const std::string& text) {
  OptionFiles files;
  if (text.ends_with(')')) {
    DD_ASSIGN_OR_RETURN(auto items, ParseScenario(text, &files));
    if (items.size() == 1 && items[0].file != nullptr) return items[0];
  }
  DD_ASSIGN_OR_RETURN(auto file, files.Load(text));
  const Transform& transform = file->transform();
  DD_ASSIGN_OR_RETURN(Params params, BindParams(transform.name, transform.params, {}));
  return Application{&transform, std::move(params), file};
}

std::string ChangesText(const Changes& c) {
  std::string text;
  auto add = [&](std::string_view what, uint64_t count) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add("scaled", c.scaled), add("set", c.set), add("inserted", c.inserted);
  add("removed", c.removed), add("fused", c.fused), add("moved", c.moved);
  add("edges changed", c.edges);
  return text.empty() ? "nothing changes" : text;
}

std::string CheckJson(const OptionFile& file, std::span<const OptionMatch> matches) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.optcheck/1").Key("file").String(file.path());
  json.Key("name").String(file.transform().name).Key("selectors").BeginArray();
  for (const OptionMatch& m : matches) {
    json.BeginInlineObject().Key("what").String(m.what).Key("line").UInt(m.line);
    json.Key("tasks").UInt(m.tasks).Key("skipped").UInt(m.skipped).Key("names").BeginArray();
    for (const std::string& name : m.names) json.String(name);
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

Table CheckTable(std::span<const OptionMatch> matches, size_t width) {
  Table table({{"selector", Align::kLeft}, {"line"}, {"tasks"}, {"first", Align::kLeft}});
  for (const OptionMatch& m : matches) {
    std::string names;
    for (const std::string& name : m.names) {
      names += (names.empty() ? "" : ", ") + CutMiddle(Printable(name), width);
    }
    table.AddRow({m.what, std::to_string(m.line), std::to_string(m.tasks), std::move(names)});
  }
  return table;
}

absl::Status WriteCheck(const OptionFile& file, std::span<const OptionMatch> matches,
                        const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(Format format, FormatOf(args));
  if (format == Format::kJson) return session.WriteResult(args, CheckJson(file, matches));
  if (format == Format::kCsv) {
    return session.WriteResult(args, CheckTable(matches, SIZE_MAX).Csv());
  }
  if (format == Format::kMarkdown) {
    return session.WriteResult(args, CheckTable(matches, SIZE_MAX).Markdown());
  }
  const Transform& t = file.transform();
  std::string text = fmt::format("{}: {} can be read; {} parameter{}\n", file.path(), t.name,
                                 t.params.size(), t.params.size() == 1 ? "" : "s");
  if (!matches.empty()) text += "\n" + CheckTable(matches, 40).Text(session.table_style());
  return session.WriteResult(args, text);
}

absl::StatusOr<Exit> Check(const std::string& name, const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(Application option, ReadOption(name));
  std::string path(args.Get("--trace"));
  if (path.empty()) {
    DD_RETURN_IF_ERROR(WriteCheck(*option.file, {}, args, session));
    session.Next(fmt::format("daydream opt check {} --trace TRACE", name));
    return Exit::kOk;
  }
  DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(path, args, session));
  session.Progress("building the graph");
  DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildFor(trace, args));
  std::vector<OptionMatch> matches;
  Graph graph = built.graph;
  Editor edit(graph);
  absl::Status status = option.file->Apply(option.params, edit, &matches);
  DD_RETURN_IF_ERROR(WriteCheck(*option.file, matches, args, session));
  if (!status.ok()) return status;
  // The same once more, with the checks that every optimization has to pass.
  graph = built.graph;
  DD_ASSIGN_OR_RETURN(Applied applied, Apply(option, graph));
  for (const std::string& warning : applied.changes.Caveats()) {
    session.Warn({.code = "W0603", .what = warning});
  }
  session.Note(ChangesText(applied.changes));
  session.Next(fmt::format("daydream whatif {} --opt '{}'", path, name));
  return Exit::kOk;
}

absl::StatusOr<Exit> New(const std::string& name, const Args& args, Session& session) {
  if (FindTransform(name) != nullptr) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0407",
         .what = fmt::format("'{}' is the name of an optimization that daydream has", name),
         .fix = fmt::format("daydream opt new my-{0} > my-{0}.yaml", name)});
  }
  if (!IsOptionName(name)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0107",
                       .what = fmt::format("'{}' cannot be the name of an optimization", name),
                       .why = "names are made of lower case letters, digits and '-'",
                       .fix = "daydream opt new my-idea > my-idea.yaml"});
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, OptionFileSkeleton(name)));
  return Exit::kOk;
}

absl::StatusOr<Exit> RunOpt(const Args& args, Session& session) {
  const auto& words = args.positional();
  if (words[0] == "list" && words.size() == 1) return ListOptions(args, session);
  if (words[0] == "show" && words.size() == 2) return Show(words[1], args, session);
  if (words[0] == "check" && words.size() == 2) return Check(words[1], args, session);
  if (words[0] == "new" && words.size() == 2) return New(words[1], args, session);
  constexpr std::string_view kVerbs[] = {"list", "show", "check", "new"};
  if (std::find(std::begin(kVerbs), std::end(kVerbs), words[0]) != std::end(kVerbs)) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0107",
         .what = fmt::format("daydream opt {} {}", words[0],
                             words.size() == 1 ? "needs a name or a file" : "takes no other word"),
         .fix = "daydream opt list, opt show NAME, opt check FILE, or opt new NAME"});
  }
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0107",
       .what = fmt::format("daydream opt {}{}", words[0], DidYouMean(words[0], kVerbs)),
       .fix = "daydream opt list, opt show NAME, opt check FILE, or opt new NAME"});
}

}  // namespace

const Command kOptCommand = {
    .name = "opt",
    .summary = "the optimizations: list and show them; check and begin your own",
    .usage = "list [--applicable TRACE] | show NAME | check FILE [--trace TRACE] | new NAME",
    .details =
        R"(An optimization of your own is a file (docs/optimization-files.md). `opt new` prints one
to start from, `opt check` reads it and, with --trace, says what each selector matches.
Files in the folders of DAYDREAM_OPTS_PATH are listed, and found by their name
(NAME.yaml).)",
    .examples =
        "daydream opt list\ndaydream opt list --applicable run.ddtrace\n"
        "daydream opt show amp\n"
        "daydream opt new my-idea > my-idea.yaml\n"
        "daydream opt check my-idea.yaml --trace run.ddtrace",
    .flags = kOptFlags,
    .takes = {.traces = true, .result = true, .times = false, .least = 1, .most = 2},
    .run = RunOpt,
};

}  // namespace daydream
