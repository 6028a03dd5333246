#include <algorithm>
#include <cmath>

#include "report/host_table.h"
#include "report/questions/findings.h"
#include "report/questions/share_curve.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "simulator/simulate.h"
#include "tools/command.h"
#include "tools/input/input.h"
#include "tools/input/inputs.h"
#include "tools/input/scenarios.h"
#include "tools/output/describe.h"
#include "tools/output/findings_text.h"
#include "tools/output/markdown.h"
#include "tools/output/memory_text.h"
#include "tools/output/prediction_text.h"
#include "tools/output/refused.h"
#include "tools/output/steps_output.h"
#include "tools/output/summary_json.h"
#include "transforms/analysis/kernel_share.h"
#include "transforms/analysis/memory_profile.h"

namespace daydream {
namespace {

constexpr std::string_view kSummaryGroupings[] = {"class", "op",     "kernel", "layer",
                                                  "phase", "stream", "host"};
constexpr Flag kSummaryFlags[] = {
    {.name = "--by",
     .value = "GROUP",
     .help = "class, op, kernel, layer, phase or stream; host: work of the CPU by operator, call, "
             "range and Python function",
     .fallback = "class",
     .choices = kSummaryGroupings},
    {.name = "--top",
     .value = "N",
     .help = "rows before the rest is summed up as [N others]",
     .fallback = "15"},
    {.name = "--per-step", .help = "instead: each step by itself, with what happened in it only"},
    {.name = "--knee",
     .help = "instead: the step against the share of the multiprocessors, and where more stop to "
             "help"},
    kKeepRecordingCostFlag,
    kMaxReplayErrorFlag,
};

double Share(Duration part, Duration whole) {
  return whole.ns > 0 ? static_cast<double>(part.ns) / static_cast<double>(whole.ns) : 0;
}

Duration Average(const Group& g) {
  return g.calls > 0 ? Duration::FromDouble(static_cast<double>(g.time.ns) / g.calls) : Duration();
}

std::string Calls(double calls) {
  auto whole = static_cast<uint64_t>(std::llround(calls));
  bool exact =
      calls - static_cast<double>(whole) < 0.05 && static_cast<double>(whole) - calls < 0.05;
  return exact ? FormatCount(whole) : fmt::format("{:.1f}", calls);
}

std::vector<std::string> SummaryRow(const std::string& name, const Group& g, const Summary& s,
                                    TimeUnit wish) {
  return {Printable(name),
          FormatTime(g.time, UnitFor(s.window, wish)),
          FormatPercent(Share(g.time, s.window)),
          Calls(g.calls),
          g.calls > 0 ? FormatTime(Average(g), wish) : "-",
          FormatPercent(Share(g.path, s.window))};
}

// Less reads 0.0 %.
constexpr double kSeen = 0.0005;

Table MakeSummaryTable(const Summary& s, GroupBy by, size_t top, TimeUnit wish) {
  Table table({{std::string(Name(by)), Align::kLeft},
               {"GPU time/step"},
               {"of step"},
               {"calls/step", Align::kRight, 1},
               {"average", Align::kRight, 2},
               {"of critical path"}});
  Group all{.name = "all", .time = {}, .path = {}};
  for (const Group& g : s.groups) {
    all.time += g.time;
    all.calls += g.calls;
    all.path += g.path;
  }
  std::vector<Group> seen;
  for (const Group& g : s.groups) {
    if (g.calls > 0 || g.time > Duration{} || Share(g.path, s.window) >= kSeen) seen.push_back(g);
  }
  for (const Group& g : WithOthers(seen, top)) table.AddRow(SummaryRow(g.name, g, s, wish));
  table.AddRule();
  table.AddRow(SummaryRow(all.name, all, s, wish));
  return table;
}

std::string Lead(const Summary& s, const ReplayCheck& replay, const MemoryProfile& memory,
                 std::string_view importer, Session& session) {
  const std::string label = replay.window ? "one window" : "one step";
  const std::string guessed =
      s.guessed > Duration{}
          ? fmt::format(" ({} of the step {})", FormatPercent(Share(s.guessed, s.window)), kGuessed)
          : "";
  std::string out = Paragraph(
      label,
      fmt::format("{}, GPU busy {}{}, comm not hidden {}, GPU idle {}",
                  FormatTime(s.step, session.unit()), FormatPercent(Share(s.gpu_busy, s.window)),
                  guessed, FormatPercent(Share(s.exposed_comm, s.window)),
                  FormatPercent(Share(s.gpu_idle, s.window))),
      kLeadLabel);
  out.replace(0, label.size(), session.Bold(label));
  out += Paragraph("critical path",
                   fmt::format("GPU {}, CPU and launching {}, comm {}, data {}",
                               FormatPercent(Share(s.path.gpu, s.window)),
                               FormatPercent(Share(s.path.cpu, s.window)),
                               FormatPercent(Share(s.path.comm, s.window)),
                               FormatPercent(Share(s.path.data, s.window))),
                   kLeadLabel);
  if (s.comm > Duration{}) {
    const TimeUnit unit = UnitFor(s.comm, session.unit());
    out += Paragraph("communication",
                     fmt::format("{} in collectives; {} of it is not hidden by other GPU work",
                                 FormatTime(s.comm, unit), FormatTime(s.exposed_comm, unit)),
                     kLeadLabel);
  }
  return out + UnrecordedLine(replay) + MemoryText(memory, importer) + "\n";
}

std::string SummaryAsCsv(const Summary& s, GroupBy by) {
  Table table({{std::string(Name(by)), Align::kLeft},
               {"time_ns_per_step"},
               {"calls_per_step"},
               {"critical_path_ns_per_step"}});
  for (const Group& g : s.groups) {
    table.AddRow({g.name, fmt::format("{}", g.time.ns), fmt::format("{:.3f}", g.calls),
                  fmt::format("{}", g.path.ns)});
  }
  return table.Csv();
}

// What the table of the host says, in its own words: GPU work is not in it.
struct HostSummary {
  std::vector<HostRow> rows;  // longest own work first
  HostRow rest, all;          // those below the first ones; everything
  size_t shown = 0;
};

HostSummary MakeHostSummary(const Graph& graph, const Timeline& timeline, size_t top) {
  HostSummary s{.rows = HostTable(graph, timeline), .rest = {}, .all = {}};
  s.shown = s.rows.size() <= top + 1 ? s.rows.size() : top;
  auto add = [](HostRow& to, const HostRow& r) {
    to.self += r.self;
    to.waiting += r.waiting;
    to.path += r.path;
    to.calls += r.calls;
  };
  for (size_t i = 0; i < s.rows.size(); ++i) {
    add(s.all, s.rows[i]);
    if (i >= s.shown) add(s.rest, s.rows[i]);
  }
  return s;
}

// What the table of the host leaves over.
std::string OtherThanHost(double share) {
  constexpr double kRounded = 0.0005;
  if (share > 1 - kRounded) return "  threads that work at the same time count each\n";
  return Wrapped(
      fmt::format("threads that work at the same time count each; the other {} of the "
                  "critical path are work of the GPU, communication, and waits for them",
                  FormatPercent(1 - share)));
}

Table HostWorkTable(const HostSummary& s, Duration step, TimeUnit wish) {
  Table table({{"host work", Align::kLeft},
               {"", Align::kLeft},
               {"own time"},
               {"waiting", Align::kRight, 1},
               {"with inside"},
               {"calls/step"},
               {"of critical path"}});
  const TimeUnit unit = UnitFor(step, wish);
  auto row = [&](const std::string& name, std::string_view kind, const HostRow& r, bool total) {
    table.AddRow({Printable(name), std::string(kind), FormatTime(r.self, unit),
                  FormatTime(r.waiting, unit), total ? FormatTime(r.total, unit) : "",
                  r.calls > 0 ? Calls(r.calls) : "-", FormatPercent(Share(r.path, step))});
  };
  for (size_t i = 0; i < s.shown; ++i) {
    const HostRow& r = s.rows[i];
    row(r.what.name, r.what.kind == HostKind::kOutside ? "" : Name(r.what.kind), r, true);
  }
  if (s.shown < s.rows.size()) {
    row(fmt::format("[{} others]", s.rows.size() - s.shown), "", s.rest, false);
  }
  table.AddRule();
  row("all", "", s.all, false);
  return table;
}

std::string HostCsv(const HostSummary& s) {
  Table table({{"name", Align::kLeft},
               {"kind", Align::kLeft},
               {"self_ns_per_step"},
               {"waiting_ns_per_step"},
               {"total_ns_per_step"},
               {"calls_per_step"},
               {"critical_path_ns_per_step"}});
  for (const HostRow& r : s.rows) {
    table.AddRow({r.what.name, std::string(Name(r.what.kind)), fmt::format("{}", r.self.ns),
                  fmt::format("{}", r.waiting.ns), fmt::format("{}", r.total.ns),
                  fmt::format("{:.3f}", r.calls), fmt::format("{}", r.path.ns)});
  }
  return table.Csv();
}

Table SummaryCurveTable(const ShareCurve& curve, TimeUnit wish) {
  Table table({{"share"}, {"multiprocessors"}, {"step"}, {"of all"}, {"kernels/step"}, {"of all"}});
  const ShareCurve::Point& all = curve.points.back();
  for (const ShareCurve::Point& p : curve.points) {
    const int n = static_cast<int>(curve.multiprocessors * p.share + 1e-9);
    table.AddRow({FormatPercent(p.share, 0), fmt::format("{}", std::max(n, 1)),
                  FormatTime(p.step, wish), FormatSpeedup(p.step.seconds() / all.step.seconds()),
                  FormatTime(p.kernels, wish),
                  FormatSpeedup(p.kernels.seconds() / std::max(all.kernels.seconds(), 1e-12))});
  }
  return table;
}

Table KneeTable(const ShareCurve& curve, size_t top, TimeUnit wish) {
  Table table({{"kernel", Align::kLeft}, {"time/step"}, {"calls/step"}, {"enough for 5 % slower"}});
  size_t shown = curve.kernels.size() <= top + 1 ? curve.kernels.size() : top;
  ShareCurve::Kernel rest{.name = fmt::format("[{} others]", curve.kernels.size() - shown)};
  double weighted = 0;
  auto add = [&](const ShareCurve::Kernel& k) {
    table.AddRow(
        {Printable(k.name), FormatTime(k.time, wish), Calls(k.calls), FormatPercent(k.knee, 0)});
  };
  for (size_t i = 0; i < curve.kernels.size(); ++i) {
    const ShareCurve::Kernel& k = curve.kernels[i];
    if (i < shown) {
      add(k);
      continue;
    }
    rest.time += k.time;
    rest.calls += k.calls;
    weighted += k.time.seconds() * k.knee;
  }
  if (shown == curve.kernels.size()) return table;
  if (rest.time > Duration{}) rest.knee = weighted / rest.time.seconds();
  add(rest);
  return table;
}

std::string CurveJson(const ShareCurve& curve) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.knee/1").Key("device").String(curve.device);
  json.Key("multiprocessors").Int(curve.multiprocessors).Key("slower").Rounded(curve.slower, 4);
  json.Key("step_knee").Rounded(curve.step_knee, 4).Key("by_launch").Rounded(curve.by_launch, 4);
  json.Key("confidence").String("low").Key("assumed_saturation");
  json.Rounded(kSaturationParam.fallback, 4);
  json.Key("curve").BeginArray();
  for (const ShareCurve::Point& p : curve.points) {
    json.BeginInlineObject().Key("share").Rounded(p.share, 4).Key("step_ns").Int(p.step.ns);
    json.Key("kernels_ns").Int(p.kernels.ns).EndObject();
  }
  json.EndArray().Key("kernels").BeginArray();
  for (const ShareCurve::Kernel& k : curve.kernels) {
    json.BeginInlineObject().Key("name").String(k.name).Key("time_ns").Int(k.time.ns);
    json.Key("calls").Rounded(k.calls, 3).Key("knee").Rounded(k.knee, 4).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string KneeText(const ShareCurve& curve, size_t top, const Session& session) {
  return fmt::format(
      R"({} {}, {} multiprocessors

{}
  the step needs {} of them: less costs more than {}

{}
  {} of kernel time by blocks of the launch, the rest divides evenly
  confidence low: that {} of the multiprocessors saturate the memory is a guess
  the model: daydream explain share
)",
      session.Bold("a share of"), curve.device, curve.multiprocessors,
      SummaryCurveTable(curve, session.unit()).Text(session.table_style()),
      FormatPercent(curve.step_knee, 0), FormatPercent(curve.slower, 0),
      KneeTable(curve, top, session.unit()).Text(session.table_style()),
      FormatPercent(curve.by_launch, 0), FormatPercent(kSaturationParam.fallback, 0));
}

// Each step as it was recorded: what happens once is left in.
absl::StatusOr<Exit> RunPerStep(Inputs& in, const Args& args, Session& session) {
  for (std::string_view other : {"--by", "--top", "--knee"}) {
    if (!args.Has(other)) continue;
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = fmt::format("--per-step and {} are two tables", other),
                       .fix = "keep one of them"});
  }
  const Graph& graph = in.built.graph;
  DD_ASSIGN_OR_RETURN(const Timeline timeline, Simulate(graph, {.blockers = true}));
  StepsReport report{.graph = &graph, .steps = SummarizeSteps(graph, timeline)};
  DD_RETURN_IF_ERROR(JudgeRecording(in));
  TellOneRank(args.positional()[0], args, session, in);
  report.findings = in.findings, report.stalls = in.stalls;
  auto text = [&] {
    return FindingsText(report.findings) +
           StepsTable(report, session.unit()).Text(session.table_style()) + "\n" +
           StepsRemarks(report, session.unit());
  };
  auto markdown = [&] {
    return FindingsMarkdown(report.findings) + StepsTable(report, session.unit()).Markdown() +
           "\n" + PlainMarkdown(StepsRemarks(report, session.unit()));
  };
  DD_RETURN_IF_ERROR(session.WriteResult(args, {.table = text,
                                                .json = [&] { return StepsJson(report); },
                                                .csv = [&] { return StepsCsv(report); },
                                                .markdown = markdown}));
  return Exit::kOk;
}

absl::StatusOr<Exit> RunSummary(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(uint64_t top, ParseCount("--top", args.Get("--top")));
  DD_ASSIGN_OR_RETURN(double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  const std::string& path = args.positional()[0];
  Inputs in;
  DD_ASSIGN_OR_RETURN(in.trace, ReadAsked(path, args, session));
  if (args.Has("--per-step")) {
    session.Progress("building the graph");
    DD_ASSIGN_OR_RETURN(in.built, BuildFor(in.trace, args));
    return RunPerStep(in, args, session);
  }
  DD_RETURN_IF_ERROR(BuildAndJudge(in, path, args, session));
  if (const absl::Status off = NoAnswer(in.replay, limit, path); !off.ok()) {
    return Refuse(off, "daydream.summary/1", &in.replay, in.findings, args, session);
  }
  WarnAboutReplay(in.replay, session);
  DD_RETURN_IF_ERROR(LeaveOutRecording(args, in.built, in.replay));
  const Graph& graph = in.built.graph;
  if (args.Has("--knee")) {
    DD_ASSIGN_OR_RETURN(ShareCurve curve, MakeShareCurve(graph));
    auto markdown = [&] {
      return SummaryCurveTable(curve, session.unit()).Markdown() + "\n" +
             KneeTable(curve, top, session.unit()).Markdown();
    };
    DD_RETURN_IF_ERROR(session.WriteResult(
        args, {.table = [&] { return KneeText(curve, top, session); },
               .json = [&] { return CurveJson(curve); },
               .csv = [&] { return SummaryCurveTable(curve, session.unit()).Csv(); },
               .markdown = markdown}));
    return Exit::kOk;
  }
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(graph, {.blockers = true}));
  const bool host = args.Get("--by") == "host";
  const GroupBy by = ParseGroupBy(args.Get("--by")).value_or(GroupBy::kClass);
  const Summary summary = Summarize(graph, timeline, by);
  const MemoryProfile memory = ProfileMemory(graph);
  const HostSummary work =
      host ? MakeHostSummary(graph, timeline, top) : HostSummary{.rest = {}, .all = {}};
  auto table = [&] {
    return host ? HostWorkTable(work, summary.window, session.unit())
                : MakeSummaryTable(summary, by, top, session.unit());
  };
  const std::string lead = Lead(summary, in.replay, memory, in.trace->provenance.importer, session);
  auto text = [&] {
    return FindingsText(in.findings) + lead + table().Text(session.table_style()) + "\n" +
           (host ? OtherThanHost(Share(work.all.path, summary.window))
                 : "  streams that overlap count twice in the table, once in 'GPU busy'\n") +
           "  more: --by op|kernel|layer|phase|stream|host   --top N   --wide   --format csv\n";
  };
  auto markdown = [&] {
    return FindingsMarkdown(in.findings) + PlainMarkdown(lead) + "\n" + table().Markdown();
  };
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table = text,
             .json =
                 [&] {
                   return host ? HostSummaryJson(work.rows, summary, &in.replay, in.findings)
                               : SummaryJson(summary, memory, by, &in.replay, in.findings);
                 },
             .csv = [&] { return host ? HostCsv(work) : SummaryAsCsv(summary, by); },
             .markdown = markdown}));
  session.Next(fmt::format("daydream advise {}", path));
  return Exit::kOk;
}

}  // namespace

const Command kSummaryCommand = {
    .name = "summary",
    .summary = "where the time of a step goes",
    .usage = "TRACE [--by GROUP | --per-step | --knee] [--top N]",
    .details =
        R"(GPU time, GPU calls and critical path by group, per step. 'of step' is GPU time against
the length of a step; 'of critical path' the part of the step that is spent on work of the
group, on GPU or CPU, while nothing else holds the step up. The last line is the sum of
the lines above. Where a check of the replay fails (E0602), or the recording holds no step
(E0607), the findings stand alone.

--per-step has a line for each step instead: as measured, as replayed, how busy the GPU was,
what the critical path consists of, and what happened in this step only (a compiler, a
module that is loaded), which all other commands leave out.)",
    .examples =
        "daydream summary run.ddtrace\ndaydream summary run.ddtrace --by layer --top 30\ndaydream "
        "summary run.ddtrace --per-step",
    .flags = kSummaryFlags,
    .takes = kOneTrace,
    .run = RunSummary,
};

}  // namespace daydream
