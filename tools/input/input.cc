#include "tools/input/input.h"

#include <atomic>
#include <charconv>
#include <filesystem>
#include <mutex>

#include "graph/step_windows.h"
#include "report/parallel.h"
#include "report/predict/what_if.h"
#include "report/text/format.h"
#include "tools/input/convert.h"
#include "tools/input/rank_input.h"
#include "trace/importer.h"
#include "trace/join/execution_links.h"
#include "trace/join/execution_trace.h"
#include "trace/join/memory_snapshot.h"
#include "trace/part/part.h"

namespace daydream {
namespace {

// More kinds of loss than this are summed up; `info` lists all.
constexpr size_t kLossesShown = 3;

void WarnAboutLosses(const std::string& path, const Trace& trace, Session& session) {
  size_t losses = 0;
  for (const ImportCount& c : trace.provenance.counts) {
    if (!c.loss || c.count == 0) continue;
    if (++losses > kLossesShown) continue;
    std::string where = c.first_byte >= 0
                            ? fmt::format("{}, byte {} of the uncompressed text", path,
                                          FormatCount(static_cast<uint64_t>(c.first_byte)))
                            : path;
    session.Warn({.code = "W0203",
                  .what = fmt::format("{} {} of {} inputs", FormatCount(c.count), c.what,
                                      FormatCount(trace.provenance.input_events)),
                  .where = where,
                  .why = c.reason});
  }
  if (losses > kLossesShown) {
    session.Note(
        fmt::format("{} more kinds of loss: daydream info {}", losses - kLossesShown, path));
  }
}

absl::Status BadSteps(std::string_view list, std::string_view why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("--steps '{}': {}", list, why),
                     .fix = "--steps auto, all, or places from 0 like 2-5,7"});
}

absl::StatusOr<size_t> ParsePlace(std::string_view list, std::string_view text) {
  size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return BadSteps(list, fmt::format("'{}' is not a number", text));
  }
  return value;
}

}  // namespace

absl::StatusOr<double> ParseShare(std::string_view flag, std::string_view text) {
  bool percent = text.ends_with('%');
  const auto number = PlainNumber(text.substr(0, text.size() - (percent ? 1 : 0)));
  const double value = number.value_or(-1) / (percent ? 100 : 1);
  // "1" may mean 1 % or all.
  if (!(value >= 0 && value <= 1) || (value == 1 && !text.ends_with('%'))) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = fmt::format("{} '{}' is not a share", flag, text),
                       .fix = fmt::format("{} 1%, or {} 100%", flag, flag)});
  }
  return value;
}

absl::StatusOr<uint64_t> ParseCount(std::string_view flag, std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0) return value;
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("{} '{}' is not a number above 0", flag, text),
                     .fix = fmt::format("{} 10", flag)});
}

namespace {

absl::StatusOr<std::shared_ptr<const Trace>> ImportReport(const std::string& path,
                                                          const ImportOptions& options,
                                                          Session& session) {
  DD_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Make());
  session.EndProgress();  // nsys says itself what it does
  DD_ASSIGN_OR_RETURN(const std::string exported, ExportReport(path, folder, session));
  session.Progress(fmt::format("reading {}", path));
  return ImportFile(exported, options, "nsys");
}

// What --et, --memory and --shapes add to a trace.
absl::StatusOr<std::shared_ptr<const Trace>> WithOtherFiles(std::shared_ptr<const Trace> trace,
                                                            const Args& args, Session& session) {
  if (args.Has("--et")) {
    const std::string path(args.Get("--et"));
    LinksFound links;
    DD_ASSIGN_OR_RETURN(trace, WithDependenciesOf(std::move(trace), path, &links));
    session.Note(fmt::format("{} of {} nodes of {} are in the profile, {}; {} between ops",
                             links.linked, links.nodes, path,
                             links.rounds == 1 ? "once" : fmt::format("{} times", links.rounds),
                             Plural(links.dependencies, "data link")));
  }
  if (args.Has("--memory")) {
    const std::string path(args.Get("--memory"));
    MemoryFound found;
    DD_ASSIGN_OR_RETURN(trace, WithMemoryOf(std::move(trace), path, &found));
    session.Note(fmt::format(
        "{} of {} allocations and releases of {} were made while the trace was recorded{}{}",
        FormatCount(found.in_window), FormatCount(found.events), path,
        found.replaced == 0
            ? ""
            : fmt::format("; they replace {} of the trace", FormatCount(found.replaced)),
        found.inconsistent ? "; its history and its segments do not fit: totals are at least"
                           : ""));
  }
  if (args.Has("--shapes")) {
    const std::string path(args.Get("--shapes"));
    ShapesFound found;
    DD_ASSIGN_OR_RETURN(trace, WithShapesOf(std::move(trace), path, &found));
    std::string told =
        fmt::format("{} of {} ops have their shapes from {}", found.matched, found.ops, path);
    if (found.doubtful()) {
      session.Warn({.code = "W0813",
                    .what = std::move(told),
                    .where = path,
                    .why = fmt::format("{} of its {} nodes are in the profile equally often",
                                       found.agree, found.nodes),
                    .effect = "shapes, and all that is told from them, may be of another program",
                    .fix = "an execution trace of the same run"});
    } else {
      session.Note(told);
    }
  }
  return trace;
}

// The importer that --from names.
absl::Status CheckFrom(std::string_view from) {
  if (from == "auto" || FindImporter(from) != nullptr) return absl::OkStatus();
  std::vector<std::string_view> names = {"auto"};
  for (const Importer* i : Importers()) names.push_back(i->name);
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("--from cannot be '{}'{}", from, DidYouMean(from, names)),
                     .fix = fmt::format("--from {}", OrList(names))});
}

absl::StatusOr<ImportOptions> ImportOptionsOf(const Args& args) {
  ImportOptions options;
  options.strict = args.Has("--strict");
  DD_ASSIGN_OR_RETURN(options.max_malformed, ParseShare("--max-errors", args.Get("--max-errors")));
  return options;
}

// What is told of a trace that was read, and what belongs to it.
absl::StatusOr<std::shared_ptr<const Trace>> Received(
    const std::string& path, absl::StatusOr<std::shared_ptr<const Trace>> trace, const Args& args,
    Session& session) {
  if (!trace.ok()) return WithCode(trace.status(), "E0201");
  WarnAboutLosses(path, **trace, session);
  return WithOtherFiles(*std::move(trace), args, session);
}

absl::StatusOr<std::shared_ptr<const Trace>> ReadOneTrace(const std::string& path, const Args& args,
                                                          Session& session) {
  DD_ASSIGN_OR_RETURN(ImportOptions options, ImportOptionsOf(args));
  std::string what = fmt::format("reading {}", path);
  options.progress = [&](int64_t consumed, int64_t total) {
    session.Progress({.what = what,
                      .done = static_cast<uint64_t>(std::max<int64_t>(consumed, 0)),
                      .total = static_cast<uint64_t>(std::max<int64_t>(total, 0)),
                      .counted = Counted::kBytes});
  };
  session.Progress(what);
  const std::string from(args.Get("--from"));
  DD_RETURN_IF_ERROR(CheckFrom(from));
  auto trace = args.Has("--convert") && IsReport(path) ? ImportReport(path, options, session)
                                                       : ImportFile(path, options, from);
  session.EndProgress();
  return Received(path, std::move(trace), args, session);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Trace>> ReadTraces(const std::vector<std::string>& paths,
                                                        const Args& args, Session& session) {
  const bool folder = paths.size() == 1 && std::filesystem::is_directory(paths[0]);
  std::vector<std::string> files = paths;
  if (folder) {
    DD_ASSIGN_OR_RETURN(files, FilesOfRun(paths[0], session));
  }
  const std::string name = folder ? paths[0] : fmt::format("{} and others", paths[0]);
  return ReadRanks(
      files, name, [&](const std::string& file) { return ReadOneTrace(file, args, session); },
      session);
}

absl::StatusOr<std::shared_ptr<const Trace>> ReadTrace(const std::string& path, const Args& args,
                                                       Session& session, Ranks ranks) {
  DD_ASSIGN_OR_RETURN(auto trace, ReadTraces({path}, args, session));
  if (ranks == Ranks::kAll) return trace;
  return ChooseRank(std::move(trace), args, session, std::filesystem::is_directory(path));
}

absl::StatusOr<std::vector<std::shared_ptr<const Trace>>> ReadSideBySide(
    const std::vector<std::string>& files, const Args& args, Session& session) {
  std::vector<std::shared_ptr<const Trace>> traces;
  // A converter has the machine for itself, and a folder is several traces.
  const bool folders = std::any_of(files.begin(), files.end(), [](const std::string& file) {
    return std::filesystem::is_directory(file);
  });
  if (folders || args.Has("--convert") || session.jobs() < 2 || files.size() < 2) {
    for (const std::string& file : files) {
      DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(file, args, session, Ranks::kAll));
      traces.push_back(std::move(trace));
    }
    return traces;
  }
  DD_ASSIGN_OR_RETURN(const ImportOptions options, ImportOptionsOf(args));
  const std::string from(args.Get("--from"));
  DD_RETURN_IF_ERROR(CheckFrom(from));
  std::vector<absl::StatusOr<std::shared_ptr<const Trace>>> read(files.size(),
                                                                 absl::UnknownError(""));
  const std::string what = fmt::format("reading {} files", files.size());
  std::mutex one_at_a_time;
  size_t done = 0;
  std::atomic<bool> failed = false;
  session.Progress(what, 0, files.size());
  ForEachParallel(files.size(), session.jobs(), [&](size_t i) {
    if (failed) return;  // files are begun in order: all in front of a bad one are read
    read[i] = ImportFile(files[i], options, from);
    if (!read[i].ok()) failed = true;
    std::lock_guard lock(one_at_a_time);
    session.Progress(what, ++done, files.size());
  });
  session.EndProgress();
  for (size_t i = 0; i < files.size(); ++i) {
    DD_ASSIGN_OR_RETURN(auto trace, Received(files[i], std::move(read[i]), args, session));
    traces.push_back(std::move(trace));
  }
  return traces;
}

namespace {

struct Places {
  size_t first = 0, last = 0;
  std::string_view item;  // as it was written
};

// Of a list like 2-5,7.
absl::StatusOr<std::vector<Places>> ParsePlaces(std::string_view list) {
  std::vector<Places> places;
  std::string_view rest = list;
  while (!rest.empty()) {
    size_t comma = std::min(rest.find(','), rest.size());
    std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    size_t dash = item.find('-');
    DD_ASSIGN_OR_RETURN(size_t first, ParsePlace(list, item.substr(0, dash)));
    size_t last = first;
    if (dash != std::string_view::npos) {
      DD_ASSIGN_OR_RETURN(last, ParsePlace(list, item.substr(dash + 1)));
    }
    if (last < first) return BadSteps(list, fmt::format("'{}' runs backwards", item));
    places.push_back({first, last, item});
  }
  return places;
}

bool IsAuto(std::string_view list) { return list == "auto" || list.empty(); }

}  // namespace

absl::Status SelectSteps(std::string_view list, Graph& graph, size_t before_part) {
  if (IsAuto(list)) return absl::OkStatus();
  // Places count from the first mark.
  const bool before = !graph.steps().empty() && graph.steps()[0].label == kBeforeTheFirstStep;
  const size_t places = before ? 1 : 0;
  const size_t count = graph.steps().size() - places;
  // What lies beside the marks is no step: "(after the last step)".
  auto beside = [&](size_t i) { return graph.steps()[i + places].label.starts_with('('); };
  // What lies before the first mark has no time, nor has a step without work.
  auto has_time = [&](size_t i) {
    const size_t step = i + places;
    return graph.steps().size() == 1 ||
           (step > 0 && graph.steps()[step].recorded_period > Duration{} && !beside(i));
  };
  size_t marked = count;  // steps, without what lies behind the last
  while (marked > 1 && beside(marked - 1)) --marked;
  std::vector<bool> wanted(count, false);
  std::vector<Places> asked;
  if (list == "all") {
    for (size_t i = 0; i < count; ++i) wanted[i] = has_time(i);
  } else {
    DD_ASSIGN_OR_RETURN(asked, ParsePlaces(list));
  }
  for (const Places& p : asked) {
    if (p.first < before_part || p.last - before_part >= marked) {
      return MakeStatus(
          absl::StatusCode::kFailedPrecondition,
          {.code = "E0303",
           .what = fmt::format("there is no step {}", p.last),
           .where = fmt::format("this trace has steps 0 to {}", before_part + marked - 1),
           .fix = "daydream info TRACE lists the steps"});
    }
    for (size_t i = p.first; i <= p.last; ++i) {
      if (!has_time(i - before_part)) {
        return MakeStatus(absl::StatusCode::kFailedPrecondition,
                          {.code = "E0303",
                           .what = fmt::format("step {} has no time of its own", i),
                           .where = fmt::format("--steps {}", list),
                           .why = i == 0 ? "nothing says where it begins: no mark does, or the "
                                           "recording began within it"
                                  : beside(i - before_part) ? "it lies beside the marked steps"
                                                            : "no work was recorded in it",
                           .fix = "--steps all takes every step that has one"});
      }
      wanted[i - before_part] = true;
    }
  }
  for (size_t i = 0; i < count; ++i) graph.mutable_step(i + places).measured = wanted[i];
  if (graph.steps().size() > 1) RecordPeriods(graph);
  return absl::OkStatus();
}

namespace {

// The first step of a recording counts where it is named and has a mark: as of a recorder that was
// on for it.
std::optional<StepRange> FromTheFirst(const Steps& steps, size_t last) {
  const bool marked =
      steps.method == StepMethod::kMark || steps.method == StepMethod::kProfilerStep;
  const bool lends = std::ranges::any_of(steps.steps, &Step::labelled);  // its layers to others
  if (!marked || lends || last >= steps.steps.size() || steps.steps[0].use != StepUse::kWarmUp) {
    return std::nullopt;
  }
  return StepRange{.first = 0, .last = last, .behind = last + 1 < steps.steps.size() ? 1U : 0U};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Trace>> PartToAsk(std::shared_ptr<const Trace> trace,
                                                       std::string_view list) {
  if (IsAuto(list)) return StandingForAll(std::move(trace));
  if (trace->ranks.size() > 1 || list == "all") return trace;
  DD_ASSIGN_OR_RETURN(const std::vector<Places> places, ParsePlaces(list));
  size_t first = SIZE_MAX, last = 0;
  for (const Places& p : places) first = std::min(first, p.first), last = std::max(last, p.last);
  if (trace->rows() <= kLongRecording && first > 0) return trace;
  const Steps steps = FindSteps(*trace);
  const auto range = first == 0 ? FromTheFirst(steps, last) : StepsAround(steps, first, last);
  return range.has_value() ? PartOf(*trace, steps, *range, PartIs::kNamed) : trace;
}

absl::StatusOr<std::shared_ptr<const Trace>> ReadAsked(const std::string& path, const Args& args,
                                                       Session& session) {
  DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(path, args, session));
  return PartToAsk(std::move(trace), args.Get("--steps"));
}

absl::StatusOr<BuiltGraph> BuildFor(std::shared_ptr<const Trace> trace, const Args& args,
                                    const BuildOptions& options) {
  const size_t before = trace->part == nullptr ? 0 : trace->part->range.begin();
  auto built = BuildGraph(std::move(trace), options);
  if (!built.ok()) return WithCode(built.status(), "E0300");
  DD_RETURN_IF_ERROR(SelectSteps(args.Get("--steps"), built->graph, before));
  return built;
}

std::string Headline(const Trace& trace, const BuiltGraph& built) {
  size_t steps = 0;
  for (const GraphStep& s : built.graph.steps()) steps += s.measured;
  // Notes of optimizations count what they change in all steps; means are of those that count.
  const size_t recorded =
      trace.part != nullptr ? trace.part->recorded : built.report.steps.steps.size();
  const size_t all = std::max(recorded, std::max<size_t>(steps, 1));
  const std::string of = steps > 0 && steps < all ? fmt::format("{} of ", steps) : "";
  std::string out =
      fmt::format("{}, {}", Printable(trace.provenance.source),
                  IsWindow(built) ? "a window without marked steps" : of + Plural(all, "step"));
  for (const Device& d : trace.devices) {
    if (d.name.empty()) continue;
    out += ", " + Printable(d.name);
    break;
  }
  if (trace.provenance.synthetic) out += ", synthetic";
  return out;
}

}  // namespace daydream
