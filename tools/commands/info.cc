#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/predict/profiler_note.h"
#include "report/predict/what_if.h"
#include "report/questions/findings.h"
#include "report/step_lengths.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "simulator/simulate.h"
#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/input/rank_input.h"
#include "tools/output/answers.h"
#include "tools/output/describe.h"
#include "tools/output/findings_text.h"
#include "tools/output/shapes_text.h"
#include "tools/output/sheet.h"
#include "tools/output/whatif_output.h"
#include "tools/record/report.h"
#include "trace/join/ranks.h"
#include "trace/recording/lacks.h"
#include "trace/steps.h"

namespace daydream {
namespace {

// Up to this many tasks every optimization is tried on a copy of the graph: about a second.
constexpr size_t kTriesUpTo = 150'000;

std::string_view MethodText(StepMethod m) {
  switch (m) {
    case StepMethod::kMark:
      return "marks of the program";
    case StepMethod::kProfilerStep:
      return "ProfilerStep marks";
    case StepMethod::kAnnotation:
      return "repeating annotations";
    case StepMethod::kPeriod:
      return "the period of the launches: there are no marks";
    case StepMethod::kWindow:
      break;
  }
  return "none";
}

// Everything that is known about a file; the graph is missing when it cannot be built.
struct Facts {
  std::shared_ptr<const Trace> trace;
  RecordingCost cost;  // of the rank that the rest is about
  Steps steps;
  absl::Status built, played;
  bool judged() const { return built.ok() && played.ok(); }  // else `in` has no replay
  Inputs in;                                                 // of one rank
  std::vector<Duration> steps_now;  // that count, of the step that predictions are of
  std::string profiler;             // what recording made of the step; empty: nothing to say
  Answers answers;
  uint64_t counts[8] = {};  // rows by EventKind
};

absl::StatusOr<Facts> Collect(const Args& args, Session& session) {
  Facts facts;
  DD_ASSIGN_OR_RETURN(facts.trace, ReadTrace(args.positional()[0], args, session, Ranks::kAll));
  for (EventKind kind : facts.trace->kind) ++facts.counts[static_cast<size_t>(kind)];
  DD_ASSIGN_OR_RETURN(auto one, ChooseRank(facts.trace, args, session));
  facts.cost = one->provenance.cost;
  facts.steps = FindSteps(*one);
  DD_ASSIGN_OR_RETURN(one, PartToAsk(std::move(one), args.Get("--steps")));
  absl::StatusOr<BuiltGraph> built;
  const auto typical = BuildTwice(one, args, session, built);
  facts.built = built.status();
  if (!built.ok()) return facts;
  Inputs& in = facts.in;
  in.built = *std::move(built);
  session.Progress("checking the replay");
  facts.played = typical.ok() ? JudgeRecording(in, *typical) : typical.status();
  if (facts.played.ok()) {
    TellOneRank(args.positional()[0], args, session, in);
    DD_RETURN_IF_ERROR(LeaveOutRecording(args, in.built, in.replay));
    DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(in.built.graph, {.blockers = true}));
    facts.profiler = ProfilerNote(in.built.graph, PathPerStep(in.built.graph, timeline));
    if (in.replay.no_step.ok()) facts.steps_now = CountedPeriods(in.built.graph, timeline);
  }
  // As whatif: of no step, nothing can be answered.
  if (facts.played.ok() && !in.replay.no_step.ok()) return facts;
  if (!args.Has("--try") && in.built.graph.size() > kTriesUpTo) return facts;
  facts.answers = TryOptimizations(in.built.graph, session);
  session.EndProgress();
  return facts;
}

// Of several ranks each has its own.
void DescribeCost(const Trace& t, Sheet& sheet) {
  for (size_t i = 0; i < t.ranks.size(); ++i) {
    const RecordingCost& cost = t.provenance.CostOfRank(i);
    if (cost.steps_with + cost.steps_without == 0) continue;
    const std::string of = t.ranks.size() > 1 ? NameOf(t.ranks[i], i) + ": " : "";
    sheet.Line("recording", of + CostText(cost));
    const std::string each = CostOfEachText(cost);
    if (!each.empty()) sheet.Line("cost of", of + each);
  }
}

void DescribeSource(const Trace& t, Sheet& sheet) {
  const Provenance& p = t.provenance;
  sheet.Line("file", fmt::format("{}, {}{}", p.source, p.format,
                                 p.synthetic ? ", SYNTHETIC: generated, not recorded" : ""));
  std::string software;
  for (const auto& [what, version] : p.software) {
    if (what.starts_with(kLacks)) continue;
    software += fmt::format("{}{} {}", software.empty() ? "" : ", ", what, version);
  }
  if (!software.empty()) sheet.Line("software", software);
  for (const auto& [what, effect] : p.software) {
    if (what.starts_with(kLacks)) {
      sheet.Line("not told", fmt::format("{}: {}", what.substr(kLacks.size()), effect));
    }
  }
  const std::vector<RankWork> work = WorkOfRanks(t);
  for (size_t i = 0; i < t.ranks.size(); ++i) {
    const Rank& r = t.ranks[i];
    if (r.rank < 0 && t.ranks.size() == 1) continue;
    std::string text =
        r.rank < 0 ? fmt::format("process {}, no rank", i) : fmt::format("{}", r.rank);
    if (r.world_size > 0) text += fmt::format(" of {}", r.world_size);
    if (t.ranks.size() > 1) {
      text += fmt::format(": GPU work {}, of it {} in collectives", FormatTime(work[i].gpu),
                          FormatTime(work[i].collectives));
    }
    sheet.Line(i == 0 ? "rank" : "", text);
  }
  DescribeCost(t, sheet);
  bool first = true;
  for (const Device& d : t.devices) {
    std::string text = fmt::format("{}: {}", d.id, d.name.empty() ? "name not recorded" : d.name);
    if (d.multiprocessors > 0) text += fmt::format(", {} SMs", d.multiprocessors);
    if (d.memory_bytes > 0) text += ", " + FormatBytes(d.memory_bytes);
    sheet.Line(std::exchange(first, false) ? "GPU" : "", text);
  }
  if (t.devices.empty()) sheet.Line("GPU", "device properties were not recorded");
}

// Where it is not the mean.
std::string MedianText(const ReplayCheck& r) {
  const StepLengths l = LengthsOf(r.measured_steps);
  return l.uneven() ? fmt::format(", median {}", FormatTime(l.median)) : "";
}

void DescribeSteps(const Facts& f, Sheet& sheet) {
  const Steps& s = f.steps;
  if (s.method == StepMethod::kWindow) {
    sheet.Line("steps",
               "none found: no marks, and no step that repeats; the whole window "
               "counts as one");
  } else {
    sheet.Line("steps", fmt::format("{} of {} count; found by {}", s.measured(), s.steps.size(),
                                    MethodText(s.method)));
  }
  size_t left_out = 0;
  for (size_t i = 0; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    if (step.use == StepUse::kMeasured || ++left_out > 4) continue;
    sheet.Line("", fmt::format("place {} ({}) left out: {}{}{}", i, step.label, UseText(step.use),
                               step.why.empty() ? "" : ", ", step.why));
  }
  if (left_out > 4) sheet.Line("", fmt::format("{} more left out", left_out - 4));
  if (!f.judged()) return;
  const ReplayCheck& r = f.in.replay;
  const std::string of = r.window       ? "all that was recorded"
                         : r.steps <= 1 ? "one step"
                                        : fmt::format("mean of {}{}, spread {}", r.steps,
                                                      MedianText(r), FormatPercent(r.spread()));
  sheet.Line(r.window ? "window" : "step time",
             fmt::format("{} measured ({}); replayed {} ({})", FormatTime(r.measured), of,
                         FormatTime(r.simulated), FormatSignedPercent(r.error())));
  if (!r.no_step.ok()) {
    const std::string why = DiagnosticOf(r.no_step).why;
    const auto& found = f.in.findings;
    const bool told = std::ranges::any_of(found, [&](const Finding& x) { return x.text == why; });
    sheet.Line("", "no step to predict anything of: " + (told ? "see above" : why));
  } else if (r.steady.has_value()) {
    sheet.Line("", fmt::format("predictions are of the steady step: {} without what the first "
                               "finding says",
                               FormatTime(*r.steady)));
  }
  if (r.unrecorded.has_value()) sheet.Line("recording", UnrecordedText(*r.unrecorded));
  if (!f.profiler.empty()) sheet.Line("profiler", f.profiler);
}

void DescribeLanes(const Trace& t, Sheet& sheet) {
  constexpr size_t kShown = 8;
  size_t shown = 0;
  for (LaneKind kind : {LaneKind::kThread, LaneKind::kStream}) {
    for (size_t i = 0; i < t.lanes.size(); ++i) {
      const Lane& lane = t.lanes[i];
      if (lane.kind != kind || ++shown > kShown) continue;
      std::string name(t.Name(lane.name));
      std::string text = fmt::format("thread {}{}{}", lane.number, name.empty() ? "" : " ", name);
      const std::string number = lane.number < 0 ? name : fmt::format("{}", lane.number);
      if (kind == LaneKind::kStream) text = fmt::format("GPU {} stream {}", lane.device, number);
      if (kind == LaneKind::kThread && name.starts_with("thread ")) text = name;
      text += fmt::format(": {}", Plural(t.lane_begin[i + 1] - t.lane_begin[i], "event"));
      sheet.Line(shown == 1 ? "lanes" : "", text);
    }
  }
  if (shown > kShown) sheet.Line("", fmt::format("{} more", shown - kShown));
}

// Generated traces had no input.
uint64_t InputEvents(const Trace& t) {
  return std::max<uint64_t>(t.provenance.input_events, t.rows());
}

// Calls of ROCm are told by their names.
std::string_view CallsOf(const Trace& t) {
  const auto call = std::ranges::find(t.kind, EventKind::kCall);
  const auto row = static_cast<size_t>(call - t.kind.begin());
  return row < t.rows() && t.Name(t.name[row]).starts_with("hip") ? "HIP call" : "CUDA call";
}

// Calls that wait are calls.
bool RecordsWaits(const Facts& f) {
  const auto count = [&](EventKind k) { return f.counts[static_cast<size_t>(k)]; };
  return !f.trace->provenance.no_waits && count(EventKind::kCall) + count(EventKind::kSync) > 0;
}

// Lists of names for numbers are in every file of Nsight Systems.
void DescribeTables(const Trace& t, Sheet& sheet) {
  constexpr size_t kShown = 6;
  std::string text;
  size_t shown = 0;
  for (const auto& [name, rows] : t.provenance.tables_not_read) {
    if (name.starts_with("ENUM_") || ++shown > kShown) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, Plural(rows, "row"));
  }
  if (shown > kShown) text += fmt::format(" and {} others", shown - kShown);
  if (!text.empty()) sheet.Line("not read", text);
}

void DescribeEvents(const Facts& f, Sheet& sheet) {
  const Trace& t = *f.trace;
  auto count = [&](EventKind k) { return f.counts[static_cast<size_t>(k)]; };
  sheet.Line("events", fmt::format("{} kept of {} in the input", FormatCount(t.rows()),
                                   FormatCount(InputEvents(t))));
  sheet.Line("", fmt::format("GPU: {}, {}, {}, {}", Plural(count(EventKind::kKernel), "kernel"),
                             Plural(count(EventKind::kMemcpy), "copy record"),
                             Plural(count(EventKind::kMemset), "memset"),
                             Plural(count(EventKind::kSync), "sync record")));
  sheet.Line("", fmt::format("CPU: {}, {}, {}, {}", Plural(count(EventKind::kOp), "operator"),
                             Plural(count(EventKind::kCall), CallsOf(t)),
                             Plural(count(EventKind::kAnnotation), "annotation"),
                             Plural(count(EventKind::kFrame), "Python frame")));
  for (const ImportCount& c : t.provenance.counts) {
    sheet.Line(c.loss     ? "lost"
               : c.repair ? "note"
                          : "not kept",
               fmt::format("{} {}{}{}", FormatCount(c.count), c.what, c.reason.empty() ? "" : ": ",
                           c.reason));
  }
  DescribeTables(t, sheet);
  if (!RecordsWaits(f) && !t.provenance.planned) {
    sheet.Line("waits", "not recorded: nothing says when the CPU stood still for the GPU");
  }
}

void DescribeGraph(const Facts& f, Sheet& sheet) {
  if (!f.built.ok()) {
    sheet.Line("graph", fmt::format("cannot be built: {}", DiagnosticOf(f.built).what));
    return;
  }
  const BuildReport& r = f.in.built.report;
  auto share = [](int64_t part, int64_t all) {
    return all > 0 ? FormatPercent(static_cast<double>(part) / static_cast<double>(all)) : "-";
  };
  sheet.Line("graph", fmt::format("{}, {}", Plural(f.in.built.graph.size(), "task"),
                                  Plural(f.in.built.graph.edges().size(), "edge")));
  sheet.Line("",
             fmt::format("{} of GPU work linked to a launch, {} of its time to a layer",
                         share(static_cast<int64_t>(r.launched), static_cast<int64_t>(r.gpu_tasks)),
                         share(r.mapped_kernel_time.ns, r.kernel_time.ns)));
  sheet.Line("",
             fmt::format("{}, {}, {}, {}", Plural(r.blocking_calls, "blocking call"),
                         Plural(r.handoffs, "thread hand-off"), Plural(r.event_waits, "event wait"),
                         fmt::format("{} held by a full queue", Plural(r.queue_blocked, "call"))));
  sheet.Line("",
             fmt::format("unexplained delays: {}, {} of the window", FormatTime(r.unexplained_time),
                         share(r.unexplained_time.ns, r.window.ns)));
}

void DescribeShapes(const Trace& t, Sheet& sheet) {
  const std::string text = ShapesText(CountShapes(t));
  if (!text.empty()) sheet.Line("shapes", text);
}

void DescribeAnswers(const Facts& f, Sheet& sheet) {
  if (f.judged() && !f.in.replay.no_step.ok()) {
    const Diagnostic why = DiagnosticOf(f.in.replay.no_step);
    sheet.Blank();
    sheet.Text("what this trace can answer\n");
    sheet.Text(Paragraph("  no", fmt::format("all of it: {} ({})", why.what, why.code), 7));
    return;
  }
  if (f.answers.all() == 0) return;
  sheet.Blank();
  sheet.Text("what this trace can answer\n");
  sheet.Text(AnswersText(f.answers));
}

std::string InfoAsText(const Facts& facts, bool markdown) {
  Sheet sheet(markdown);
  sheet.Findings(facts.in.findings);
  DescribeSource(*facts.trace, sheet);
  DescribeSteps(facts, sheet);
  DescribeLanes(*facts.trace, sheet);
  DescribeEvents(facts, sheet);
  DescribeGraph(facts, sheet);
  DescribeShapes(*facts.trace, sheet);
  DescribeAnswers(facts, sheet);
  return sheet.Take();
}

void WriteInfoTrace(const Facts& f, JsonWriter& json) {
  const Trace& t = *f.trace;
  json.Key("file").String(t.provenance.source).Key("format").String(t.provenance.format);
  json.Key("importer").String(t.provenance.importer);
  json.Key("synthetic").Bool(t.provenance.synthetic);
  json.Key("software").BeginObject();
  for (const auto& [what, version] : t.provenance.software) json.Key(what).String(version);
  json.EndObject();
  json.Key("devices").BeginArray();
  for (const Device& d : t.devices) {
    json.BeginInlineObject().Key("id").Int(d.id).Key("name").String(d.name);
    json.Key("memory_bytes").UInt(d.memory_bytes);
    json.Key("multiprocessors").Int(d.multiprocessors).EndObject();
  }
  json.EndArray();
  json.Key("ranks").BeginArray();
  for (size_t i = 0; i < t.ranks.size(); ++i) {
    const Rank& r = t.ranks[i];
    json.BeginInlineObject().Key("rank").Int(r.rank).Key("world_size").Int(r.world_size);
    if (i < t.provenance.rank_costs.size()) WriteCost(t.provenance.rank_costs[i], json);
    json.EndObject();
  }
  json.EndArray();
  WriteCost(f.cost, json);
  json.Key("lanes").UInt(t.lanes.size());
  json.Key("input_events").UInt(InputEvents(t)).Key("events").UInt(t.rows());
  json.Key("events_by_kind").BeginObject();
  constexpr std::string_view kKinds[] = {"op",     "annotation", "frame",  "call",
                                         "kernel", "memcpy",     "memset", "sync"};
  for (size_t i = 0; i < 8; ++i) json.Key(kKinds[i]).UInt(f.counts[i]);
  json.EndObject();
  // What became no event, and what became one with a repair: the first and the events are all.
  for (bool repaired : {false, true}) {
    json.Key(repaired ? "repaired" : "skipped").BeginArray();
    for (const ImportCount& c : t.provenance.counts) {
      if (c.repair != repaired) continue;
      json.BeginInlineObject().Key("what").String(c.what).Key("count").UInt(c.count);
      json.Key("loss").Bool(c.loss).Key("reason").String(c.reason);
      json.Key("first_byte").Int(c.first_byte).EndObject();
    }
    json.EndArray();
  }
  json.Key("tables_not_read").BeginArray();
  for (const auto& [name, rows] : t.provenance.tables_not_read) {
    json.BeginInlineObject().Key("name").String(name).Key("rows").UInt(rows).EndObject();
  }
  json.EndArray();
  const ShapeCount shapes = CountShapes(t);
  json.Key("ops").UInt(shapes.ops).Key("ops_with_shapes").UInt(shapes.with);
  json.Key("waits").String(RecordsWaits(f) ? "recorded" : "not recorded");
}

void WriteSteps(const Facts& f, JsonWriter& json) {
  json.Key("steps").BeginObject();
  json.Key("method").String(MethodText(f.steps.method));
  json.Key("measured").UInt(f.steps.measured());
  json.Key("all").BeginArray();
  for (const Step& s : f.steps.steps) {
    json.BeginInlineObject().Key("label").String(s.label).Key("use").String(UseText(s.use));
    json.Key("begin_ns").Int(s.begin.ns).Key("end_ns").Int(s.end.ns);
    json.Key("why").String(s.why).EndObject();
  }
  json.EndArray().EndObject();
  if (!f.judged()) return;
  WriteReplay(f.in.replay, json);
  WriteStep(MeanOf(f.steps_now), f.steps_now, json);
  json.Key("profiler").String(f.profiler);
}

void WriteGraph(const Facts& f, JsonWriter& json) {
  if (!f.built.ok()) {
    Diagnostic d = DiagnosticOf(f.built);
    json.Key("graph_error").BeginObject().Key("code").String(d.code);
    json.Key("what").String(d.what).EndObject();
    return;
  }
  const BuildReport& r = f.in.built.report;
  json.Key("graph").BeginObject();
  json.Key("tasks")
      .UInt(f.in.built.graph.size())
      .Key("edges")
      .UInt(f.in.built.graph.edges().size());
  json.Key("gpu_tasks").UInt(r.gpu_tasks).Key("launched").UInt(r.launched);
  json.Key("kernel_time_ns").Int(r.kernel_time.ns);
  json.Key("mapped_kernel_time_ns").Int(r.mapped_kernel_time.ns);
  json.Key("blocking_calls").UInt(r.blocking_calls).Key("handoffs").UInt(r.handoffs);
  json.Key("event_waits").UInt(r.event_waits).Key("queue_blocked").UInt(r.queue_blocked);
  json.Key("contended").UInt(r.contended).Key("unexplained").UInt(r.unexplained);
  json.Key("unexplained_ns").Int(r.unexplained_time.ns).Key("window_ns").Int(r.window.ns);
  json.Key("warnings").BeginArray();
  for (const std::string& w : r.warnings) json.String(w);
  json.EndArray().EndObject();
  WriteAnswers(f.answers, json);
}

constexpr std::string_view kInfoFormats[] = {"table", "json", "md"};
constexpr Flag kInfoFlags[] = {
    {.name = "--format",
     .value = "FORMAT",
     .help = "table, json or md",
     .fallback = "table",
     .choices = kInfoFormats},
    {.name = "--output", .letter = 'o', .value = "FILE", .help = "write the result there"},
    {.name = "--force-overwrite", .letter = 'f', .help = "replace the file if it exists"},
    {.name = "--try", .help = "try every optimization, however large the trace"},
};

absl::StatusOr<Exit> RunInfo(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(Facts facts, Collect(args, session));
  DD_ASSIGN_OR_RETURN(Format format, FormatOf(args));
  std::string text;
  if (format == Format::kJson) {
    JsonWriter json;
    json.BeginObject().Key("schema").String("daydream.info/1");
    WriteUntried(facts.answers, json);
    WriteInfoTrace(facts, json);
    WriteFindings(facts.in.findings, json);
    WriteSteps(facts, json);
    WriteGraph(facts, json);
    json.EndObject();
    text = json.Take() + "\n";
  } else {
    text = InfoAsText(facts, format == Format::kMarkdown);
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  const Answers& a = facts.answers;
  if (!a.untried.empty()) return EndUntried(a.untried.size(), a.all(), session);
  session.Next(fmt::format("daydream summary {}", args.positional()[0]));
  return Exit::kOk;
}

}  // namespace

const Command kInfoCommand = {
    .name = "info",
    .summary = "what is in a trace, what was left out, what it can answer",
    .usage = "TRACE",
    .details =
        R"(Lists the events kept and everything that was not, with the reason; which steps count and
how they were found; what the dependency rules explain; and which optimizations find
something to change. Ctrl-C while these are tried leaves all else and those that are done.)",
    .examples = "daydream info run.pt.trace.json.gz\ndaydream info run.ddtrace --format json",
    .flags = kInfoFlags,
    .takes = {.traces = true, .least = 1, .most = 1},
    .run = RunInfo,
};

}  // namespace daydream
