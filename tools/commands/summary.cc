#include <algorithm>

#include "report/questions/share_curve.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "simulator/simulate.h"
#include "tools/command.h"
#include "tools/input/input.h"
#include "tools/output/memory_text.h"
#include "transforms/analysis/kernel_share.h"
#include "transforms/analysis/memory_profile.h"

namespace daydream {
namespace {

constexpr std::string_view kGroupings[] = {"class", "op", "kernel", "layer", "phase", "stream"};
constexpr Flag kFlags[] = {
    {.name = "--by",
     .value = "GROUP",
     .help = "class, op, kernel, layer, phase or stream",
     .fallback = "class",
     .choices = kGroupings},
    {.name = "--top",
     .value = "N",
     .help = "rows before the rest is summed up as [N others]",
     .fallback = "15"},
    {.name = "--knee",
     .help = "instead: the step against the share of the multiprocessors, and where more stop to "
             "help"},
};

double Share(Duration part, Duration whole) {
  return whole.ns > 0 ? static_cast<double>(part.ns) / static_cast<double>(whole.ns) : 0;
}

Duration Average(const Group& g) {
  return g.calls > 0 ? Duration::FromDouble(static_cast<double>(g.time.ns) / g.calls) : Duration();
}

std::string Calls(double calls) {
  auto whole = static_cast<uint64_t>(calls + 0.5);
  bool exact =
      calls - static_cast<double>(whole) < 0.05 && static_cast<double>(whole) - calls < 0.05;
  return exact ? FormatCount(whole) : fmt::format("{:.1f}", calls);
}

std::vector<std::string> Row(const std::string& name, const Group& g, const Summary& s) {
  return {Printable(name),
          FormatTime(g.time, UnitFor(s.window)),
          FormatPercent(Share(g.time, s.window)),
          Calls(g.calls),
          g.calls > 0 ? FormatTime(Average(g)) : "-",
          FormatPercent(Share(g.path, s.window))};
}

Table MakeTable(const Summary& s, GroupBy by, size_t top) {
  Table table({{std::string(Name(by)), Align::kLeft},
               {"GPU time/step"},
               {"of step"},
               {"calls/step"},
               {"average"},
               {"of critical path"}});
  Group all{.name = "all", .time = {}, .path = {}};
  for (const Group& g : s.groups) {
    all.time += g.time;
    all.calls += g.calls;
    all.path += g.path;
  }
  for (const Group& g : WithOthers(s.groups, top)) table.AddRow(Row(g.name, g, s));
  table.AddRule();
  table.AddRow(Row(all.name, all, s));
  return table;
}

std::string Lead(const Summary& s, const MemoryProfile& memory, Session& session) {
  std::string out = fmt::format(
      "{} {}      GPU busy {}    comm not hidden {}    GPU idle {}\n", session.Bold("one step"),
      FormatTime(s.step), FormatPercent(Share(s.gpu_busy, s.window)),
      FormatPercent(Share(s.exposed_comm, s.window)), FormatPercent(Share(s.gpu_idle, s.window)));
  out += fmt::format(
      "critical path          GPU {}   CPU and launching {}   comm {}   data {}\n",
      FormatPercent(Share(s.path.gpu, s.window)), FormatPercent(Share(s.path.cpu, s.window)),
      FormatPercent(Share(s.path.comm, s.window)), FormatPercent(Share(s.path.data, s.window)));
  return out + MemoryText(memory) + "\n";
}

std::string AsJson(const Summary& s, const MemoryProfile& memory, GroupBy by) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.summary/1");
  json.Key("steps").UInt(s.steps).Key("step_ns").Int(s.step.ns).Key("window_ns").Int(s.window.ns);
  json.Key("gpu_busy_ns").Int(s.gpu_busy.ns).Key("gpu_idle_ns").Int(s.gpu_idle.ns);
  json.Key("exposed_comm_ns").Int(s.exposed_comm.ns).Key("gpu_time_ns").Int(s.gpu_time.ns);
  json.Key("critical_path").BeginInlineObject();
  json.Key("gpu_ns").Int(s.path.gpu.ns).Key("cpu_ns").Int(s.path.cpu.ns);
  json.Key("comm_ns").Int(s.path.comm.ns).Key("data_ns").Int(s.path.data.ns).EndObject();
  json.Key("memory");
  WriteMemoryProfile(memory, json);
  json.Key("by").String(Name(by)).Key("groups").BeginArray();
  for (const Group& g : s.groups) {
    json.BeginInlineObject().Key("name").String(g.name).Key("time_ns").Int(g.time.ns);
    json.Key("calls").Rounded(g.calls, 3).Key("critical_path_ns").Int(g.path.ns).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string AsCsv(const Summary& s, GroupBy by) {
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

Table CurveTable(const ShareCurve& curve) {
  Table table({{"share"}, {"multiprocessors"}, {"step"}, {"of all"}, {"kernels/step"}, {"of all"}});
  const ShareCurve::Point& all = curve.points.back();
  for (const ShareCurve::Point& p : curve.points) {
    const int n = static_cast<int>(curve.multiprocessors * p.share + 1e-9);
    table.AddRow({FormatPercent(p.share, 0), fmt::format("{}", std::max(n, 1)), FormatTime(p.step),
                  FormatSpeedup(p.step.seconds() / all.step.seconds()), FormatTime(p.kernels),
                  FormatSpeedup(p.kernels.seconds() / std::max(all.kernels.seconds(), 1e-12))});
  }
  return table;
}

Table KneeTable(const ShareCurve& curve, size_t top) {
  Table table({{"kernel", Align::kLeft}, {"time/step"}, {"calls/step"}, {"enough for 5 % slower"}});
  size_t shown = curve.kernels.size() <= top + 1 ? curve.kernels.size() : top;
  ShareCurve::Kernel rest{.name = fmt::format("[{} others]", curve.kernels.size() - shown)};
  double weighted = 0;
  auto add = [&](const ShareCurve::Kernel& k) {
    table.AddRow({Printable(k.name), FormatTime(k.time), Calls(k.calls), FormatPercent(k.knee, 0)});
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
      CurveTable(curve).Text(session.table_style()), FormatPercent(curve.step_knee, 0),
      FormatPercent(curve.slower, 0), KneeTable(curve, top).Text(session.table_style()),
      FormatPercent(curve.by_launch, 0), FormatPercent(kSaturationParam.fallback, 0));
}

absl::StatusOr<Exit> Run(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(uint64_t top, ParseCount("--top", args.Get("--top")));
  DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(args.positional()[0], args, session));
  DD_ASSIGN_OR_RETURN(BuiltGraph built, BuildFor(trace, args));
  if (args.Has("--knee")) {
    DD_ASSIGN_OR_RETURN(ShareCurve curve, MakeShareCurve(built.graph));
    auto markdown = [&] {
      return CurveTable(curve).Markdown() + "\n" + KneeTable(curve, top).Markdown();
    };
    DD_RETURN_IF_ERROR(
        session.WriteResult(args, {.table = [&] { return KneeText(curve, top, session); },
                                   .json = [&] { return CurveJson(curve); },
                                   .csv = [&] { return CurveTable(curve).Csv(); },
                                   .markdown = markdown}));
    return Exit::kOk;
  }
  DD_ASSIGN_OR_RETURN(Timeline timeline, Simulate(built.graph, {.blockers = true}));
  GroupBy by = ParseGroupBy(args.Get("--by")).value_or(GroupBy::kClass);
  Summary summary = Summarize(built.graph, timeline, by);
  const MemoryProfile memory = ProfileMemory(built.graph);
  auto text = [&] {
    return Lead(summary, memory, session) +
           MakeTable(summary, by, top).Text(session.table_style()) +
           "\n  streams that overlap count twice in the table, once in 'GPU busy'\n"
           "  more: --by op|kernel|layer|phase|stream   --top N   --wide   --format csv\n";
  };
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table = text,
             .json = [&] { return AsJson(summary, memory, by); },
             .csv = [&] { return AsCsv(summary, by); },
             .markdown = [&] { return MakeTable(summary, by, top).Markdown(); }}));
  session.Next(fmt::format("daydream whatif {} --opt amp,fuse", args.positional()[0]));
  return Exit::kOk;
}

}  // namespace

const Command kSummaryCommand = {
    .name = "summary",
    .summary = "where the time of a step goes",
    .usage = "TRACE [--by GROUP] [--top N] [--knee]",
    .details =
        R"(GPU time, GPU calls and critical path by group, per step. 'of step' is GPU time against
the length of a step; 'of critical path' the part of the step that is spent on work of the
group, on GPU or CPU, while nothing else holds the step up. The last line is the sum of
the lines above.)",
    .examples = "daydream summary run.ddtrace\ndaydream summary run.ddtrace --by layer --top 30",
    .flags = kFlags,
    .reads_traces = true,
    .writes_result = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .run = Run,
};

}  // namespace daydream
