#include <cmath>

#include "report/questions/causal.h"
#include "report/text/escape.h"
#include "report/text/format.h"
#include "report/windows.h"
#include "simulator/simulate.h"
#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/input/scenarios.h"
#include "tools/output/findings_text.h"
#include "tools/output/markdown.h"
#include "tools/output/prediction_text.h"
#include "tools/output/refused.h"
#include "tools/output/whatif_output.h"
#include "tools/running/interrupt.h"
#include "transforms/core/select.h"

namespace daydream {
namespace {

constexpr std::string_view kFamilies[] = {"all",    "kernels", "layer", "collective",
                                          "copies", "call",    "host"};
constexpr Flag kCausalFlags[] = {
    {.name = "--by",
     .value = "FAMILY",
     .help = "kernels, layer, collective, copies, call or host work; all",
     .fallback = "all",
     .choices = kFamilies,
     .repeats = true},
    {.name = "--select",
     .value = "SELECTOR",
     .help = "also the curve of these tasks, 'op:conv&phase:backward' (daydream explain speedup)",
     .repeats = true},
    {.name = "--points",
     .value = "N",
     .help = "points of a curve, evenly up to 100 %; at most 1000",
     .fallback = "20"},
    {.name = "--top",
     .value = "N",
     .help = "groups of each family, those with most work",
     .fallback = "12"},
    kTrueStepFlag,
    kKeepRecordingCostFlag,
    kSamplesFlag,
    kMaxReplayErrorFlag,
};
// Parts of the work taken away that the table shows, in percent, where those points were played.
constexpr size_t kShown[] = {10, 25, 50, 75, 100};
constexpr size_t kRowsShown = 20;
constexpr uint64_t kCausalMostPoints = 1000;

// What is missing of a profile that was told to stop.
std::string MissingCurves(const CausalProfile& p) {
  return fmt::format("interrupted: {} of {} are missing", FormatCount(p.unplayed),
                     Plural(p.unplayed + p.curves.size(), "curve"));
}

struct Report {
  const Inputs* in = nullptr;
  std::string headline;
  CausalProfile profile;
  std::vector<Duration> steps;  // periods of the counted steps, whose mean is that of `profile`
};

double ShareOf(Duration part, Duration whole) {
  return whole.ns > 0 ? static_cast<double>(part.ns) / static_cast<double>(whole.ns) : 0;
}

// Those of kShown that are points of the curves.
std::vector<size_t> PointsShown(const CausalProfile& profile) {
  std::vector<size_t> points;
  for (size_t percent : kShown) {
    if (percent * profile.points % 100 == 0) points.push_back(percent * profile.points / 100);
  }
  return points;
}

// Where the gains get smaller, and what holds the step up then: "1.7x, host work".
std::string Bend(const SpeedupCurve& c) {
  if (!c.bend.has_value()) return "-";
  std::string text = FormatSpeedup(1 / (1 - *c.bend));
  if (c.next.has_value()) text += ", " + Printable(c.next->what);
  return text;
}

// The curves of the table.
std::vector<const SpeedupCurve*> Shown(const CausalProfile& p) {
  std::vector<const SpeedupCurve*> shown;
  for (const SpeedupCurve& c : p.curves) {
    if (!c.flat && shown.size() < kRowsShown) shown.push_back(&c);
  }
  return shown;
}

Table CausalCurveTable(const Report& report, TimeUnit wish) {
  const CausalProfile& p = report.profile;
  const std::vector<const SpeedupCurve*> shown = Shown(p);
  const bool families = std::ranges::any_of(
      shown, [&](const SpeedupCurve* c) { return c->family != shown.front()->family; });
  std::vector<Column> columns = {{"less of", Align::kLeft}};
  if (families) columns.push_back({"", Align::kLeft});
  columns.insert(columns.end(), {{"per step"}, {"calls", Align::kRight, 2}});
  const std::vector<size_t> points = PointsShown(p);
  // Half and all of it say most.
  const auto spare = [&](size_t point) {
    return point == p.points || 2 * point == p.points ? 0 : 4 * point < p.points ? 1 : 2;
  };
  for (size_t point : points) {
    columns.push_back({FormatPercent(p.share(point), 0), Align::kRight, spare(point)});
  }
  columns.push_back({"bends at", Align::kLeft});
  Table table(std::move(columns));
  const TimeUnit unit = UnitFor(p.step, wish);
  for (const SpeedupCurve* c : shown) {
    std::vector<std::string> row = {Printable(c->name)};
    if (families) row.emplace_back(Name(c->family));
    row.push_back(FormatTime(c->work, unit));
    row.push_back(fmt::format("{:.0f}", c->calls));
    for (size_t point : points) {
      const Duration saved = c->steps.front() - c->steps[point];
      row.push_back(FormatSignedPercent(-ShareOf(saved, c->steps.front())));
    }
    row.push_back(Bend(*c));
    table.AddRow(std::move(row));
  }
  return table;
}

std::string Flat(const CausalProfile& p, TimeUnit wish) {
  std::string text;
  for (const SpeedupCurve& c : p.curves) {
    if (!c.flat || c.work < p.step.Scaled(0.005)) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", CutMiddle(Printable(c.name), 60),
                        FormatTime(c.work, UnitFor(p.step, wish)));
  }
  return text.empty() ? "" : Wrapped("do not bother, the step hardly notices: " + text);
}

std::string Text(const Report& report, const Session& session) {
  const CausalProfile& p = report.profile;
  const TimeUnit wish = session.unit();
  std::string out =
      ReplayLine(report.headline, report.in->replay, wish, session.table_style().max_width);
  const std::string findings = FindingsText(report.in->findings);
  if (!findings.empty()) out += "\n" + findings;
  out += fmt::format("{} per step; how much shorter it gets with less of one kind of work\n\n",
                     FormatTime(p.step, wish));
  Table table = CausalCurveTable(report, wish);
  if (table.rows() == 0) {
    out += "  no kind of work alone is worth 0.5 % of the step\n";
  } else {
    out += table.Text(session.table_style());
  }
  out += Flat(p, wish);
  if (p.unplayed > 0) out += "  " + MissingCurves(p) + "\n";
  if (p.left_out > 0) {
    out += fmt::format("  {} with less work left out: --top\n", Plural(p.left_out, "group"));
  }
  return out;
}

std::string CausalMarkdown(const Report& report, const Session& session) {
  const CausalProfile& p = report.profile;
  const TimeUnit wish = session.unit();
  std::string out = ReplayLine(MarkdownText(report.headline), report.in->replay, wish) + "\n" +
                    FindingsMarkdown(report.in->findings);
  out += fmt::format("{} per step; how much shorter it gets with less of one kind of work\n\n",
                     FormatTime(p.step, wish));
  const Table table = CausalCurveTable(report, wish);
  out += table.rows() > 0 ? table.Markdown() : "no kind of work alone is worth 0.5 % of the step\n";
  if (p.unplayed > 0) out += "\n" + MissingCurves(p) + "\n";
  const std::string flat = Flat(p, wish);
  return flat.empty() ? out : out + "\n" + PlainMarkdown(flat);
}

std::string CausalJson(const Report& report) {
  const CausalProfile& p = report.profile;
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.causal/1");
  if (p.unplayed > 0) json.Key("interrupted").Bool(true);
  const Trace& trace = *report.in->trace;
  WriteTrace(trace, trace.provenance.source, report.in->built.report, json);
  json.Key("steps").UInt(report.in->replay.steps);
  WriteReplay(report.in->replay, json);
  WriteFindings(report.in->findings, json);
  WriteStep(p.step, report.steps, json);
  json.Key("step_ns").Int(p.step.ns).Key("left_out").UInt(p.left_out);
  json.Key("taken_away").BeginInlineArray();
  for (size_t i = 0; i <= p.points; ++i) json.Rounded(p.share(i), 6);
  json.EndArray().Key("curves").BeginArray();
  for (const SpeedupCurve& c : p.curves) {
    json.BeginObject().Key("family").String(Name(c.family)).Key("name").String(c.name);
    json.Key("work_ns").Int(c.work.ns).Key("calls").Rounded(c.calls, 3);
    json.Key("saved_ns").Int(c.saved().ns).Key("step_ns").BeginInlineArray();
    for (Duration d : c.steps) json.Int(d.ns);
    json.EndArray().Key("flat").Bool(c.flat).Key("knee");
    if (c.bend.has_value()) {
      json.Rounded(*c.bend, 6);
    } else {
      json.Null();
    }
    json.Key("next_limiter");
    if (c.next.has_value()) {
      json.String(c.next->what);
    } else {
      json.Null();
    }
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string Csv(const CausalProfile& p) {
  std::string out = "family,name,taken_away,step_ns\n";
  for (const SpeedupCurve& c : p.curves) {
    for (size_t i = 0; i < c.steps.size(); ++i) {
      out += fmt::format("{},{},{:.6g},{}\n", Name(c.family), CsvField(c.name), p.share(i),
                         c.steps[i].ns);
    }
  }
  return out;
}

absl::StatusOr<std::vector<WorkGroup>> GroupsFor(const Args& args, const Graph& graph) {
  std::vector<WorkGroup> groups = WorkGroups(graph);
  const std::vector<std::string> by = args.All("--by");
  std::erase_if(groups, [&](const WorkGroup& g) {
    return !by.empty() && std::find(by.begin(), by.end(), "all") == by.end() &&
           std::find(by.begin(), by.end(), Name(g.family)) == by.end();
  });
  for (const std::string& text : args.All("--select")) {
    DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(text));
    groups.push_back({Family::kSelected, text, selector.Select(graph)});
    if (!groups.back().tasks.empty()) continue;
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0601",
                       .what = fmt::format("--select '{}' matches nothing in this trace", text),
                       .fix = "daydream summary --by op, class or kernel shows what there is"});
  }
  return groups;
}

absl::StatusOr<Exit> RunCausal(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  CausalOptions options{.jobs = session.jobs()};
  DD_ASSIGN_OR_RETURN(options.points, ParseCount("--points", args.Get("--points")));
  DD_ASSIGN_OR_RETURN(options.most, ParseCount("--top", args.Get("--top")));
  const Format format = FormatOf(args).value_or(Format::kTable);  // tables show no flat curve
  options.flat_in_full = format != Format::kTable && format != Format::kMarkdown;
  if (options.points > kCausalMostPoints) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0104",
         .what = fmt::format("--points {}: more than {}", args.Get("--points"), kCausalMostPoints),
         .why = "each point replays the trace once for every curve",
         .fix = "--points 100 is one a percent"});
  }
  for (const std::string& text : args.All("--select")) {
    DD_RETURN_IF_ERROR(Selector::Compile(text).status());
  }
  const std::string& path = args.positional()[0];
  DD_ASSIGN_OR_RETURN(Inputs in, LoadInputs(path, args, session));
  if (const absl::Status off = NoAnswer(in.replay, limit, path); !off.ok()) {
    return Refuse(off, "daydream.causal/1", &in.replay, in.findings, args, session);
  }
  DD_ASSIGN_OR_RETURN(std::vector<WorkGroup> groups, GroupsFor(args, in.built.graph));
  Report report{.in = &in, .headline = Headline(*in.trace, in.built)};
  std::optional<InterruptNote> note(session.KeepsDone("curves"));
  options.progress = [&](size_t done, size_t total) {
    note->Done(done, total);
    session.Progress({.what = "playing curves", .done = done, .total = total, .last = true});
  };
  options.stopped = [&] { return note->stopped(); };
  DD_ASSIGN_OR_RETURN(report.profile, ProfileCauses(in.built.graph, groups, options));
  note.reset();
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(in.built.graph));
  report.steps = CountedPeriods(in.built.graph, timeline);
  DD_RETURN_IF_ERROR(
      session.WriteResult(args, {.table = [&] { return Text(report, session); },
                                 .json = [&] { return CausalJson(report); },
                                 .csv = [&] { return Csv(report.profile); },
                                 .markdown = [&] { return CausalMarkdown(report, session); }}));
  WarnAboutReplay(in.replay, session);
  if (report.profile.unplayed > 0) {
    session.Warn({.what = MissingCurves(report.profile),
                  .effect = "the result holds those that were played"});
    return Exit::kInterrupted;
  }
  session.Next(fmt::format("daydream advise {}", path));
  return Exit::kOk;
}

}  // namespace

const Command kCausalCommand = {
    .name = "causal",
    .summary = "what less of one kind of work would save, and where that ends",
    .usage = "TRACE [FLAG...]",
    .details =
        R"(Plays the trace with 0 to 100 % of one kind of work taken away, for each kind of kernel,
each layer (its GPU work), collective, copy and API call, and for other host work: the
virtual speed-ups of Coz (SOSP'15), which a replay has for free. Where a curve bends,
something else begins to hold the step up: it says how much faster the work is there,
and what is longest on the critical path then. Work on several lanes counts once on
each. Nothing else gets slower or faster: to judge a real optimization ask whatif or
advise. Ctrl-C leaves the curves that were played; again, it ends at once.)",
    .examples =
        "daydream causal run.ddtrace\n"
        "daydream causal run.ddtrace --by layer --top 40\n"
        "daydream causal run.ddtrace --select 'phase:backward&kind:kernel' --format csv",
    .flags = kCausalFlags,
    .takes = kOneTrace,
    .run = RunCausal,
};

}  // namespace daydream
