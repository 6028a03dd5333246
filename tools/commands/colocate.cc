#include "report/questions/colocation.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/table.h"
#include "tools/command.h"
#include "tools/input/input.h"

namespace daydream {
namespace {

constexpr std::string_view kPolicies[] = {"time", "space"};
constexpr Flag kColocateFlags[] = {
    {.name = "--policy",
     .value = "POLICY",
     .help = "time: the driver's slices, one program at a time; space: MPS, side by side",
     .fallback = "time",
     .choices = kPolicies},
};

double PerSecond(Duration period) { return period.ns > 0 ? 1 / period.seconds() : 0; }

Table MakeColocateTable(const Colocation& c, const Args& args, TimeUnit wish) {
  Table table({{"program", Align::kLeft},
               {"GPU busy alone"},
               {"step recorded", Align::kRight, 2},
               {"alone, repeated"},
               {"step together"},
               {"longer"},
               {"steps/s alone", Align::kRight, 1},
               {"steps/s together"}});
  for (size_t i = 0; i < 2; ++i) {
    const ColocatedProgram& p = c.programs[i];
    table.AddRow(
        {Printable(args.positional()[i]), FormatPercent(p.gpu_busy), FormatTime(p.recorded, wish),
         FormatTime(p.alone, wish), FormatTime(p.together, wish), FormatSpeedup(p.slowdown()),
         fmt::format("{:.2f}", PerSecond(p.alone)), fmt::format("{:.2f}", PerSecond(p.together))});
  }
  return table;
}

std::string ColocateAsText(const Colocation& c, const Args& args, Session& session) {
  std::string text = MakeColocateTable(c, args, session.unit()).Text(session.table_style());
  text += fmt::format(
      "\n  together they do {:.2f}x the work of one after the other\n"
      "  kernels keep others away for {} of their time ({})\n"
      "  not modelled: caches, copies that share a link, processors that the hosts share, memory\n",
      c.throughput(), FormatPercent(c.kept),
      args.Get("--policy") == "space" ? "the part of the GPU that they use"
                                      : "sliced by time: nothing of two programs runs at once");
  if (args.Get("--policy") == "space") {
    text +=
        "  under MPS, kernels bound by memory leave room for arithmetic of the other program; how "
        "much rests\n  on a guess: half of the multiprocessors saturate the memory. No pair of "
        "programs was measured\n";
  }
  return text;
}

std::string ColocateAsJson(const Colocation& c, const Args& args) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.colocate/1");
  json.Key("policy").String(args.Get("--policy")).Key("programs").BeginArray();
  for (size_t i = 0; i < 2; ++i) {
    const ColocatedProgram& p = c.programs[i];
    json.BeginInlineObject().Key("trace").String(args.positional()[i]);
    json.Key("recorded_ns").Int(p.recorded.ns);
    json.Key("alone_ns").Int(p.alone.ns).Key("together_ns").Int(p.together.ns);
    json.Key("gpu_busy").Rounded(p.gpu_busy, 4).Key("steps").UInt(p.steps).EndObject();
  }
  json.EndArray().Key("throughput").Rounded(c.throughput(), 4).EndObject();
  return json.Take() + "\n";
}

absl::StatusOr<Exit> RunColocate(const Args& args, Session& session) {
  std::vector<BuiltGraph> built;
  for (const std::string& path : args.positional()) {
    DD_ASSIGN_OR_RETURN(auto trace, ReadTrace(path, args, session));
    session.Progress("building the graph");
    DD_ASSIGN_OR_RETURN(BuiltGraph graph, BuildFor(trace, args));
    built.push_back(std::move(graph));
  }
  const GpuPolicy policy = args.Get("--policy") == "space" ? GpuPolicy::kSpace : GpuPolicy::kTime;
  session.Progress("playing both programs");
  DD_ASSIGN_OR_RETURN(Colocation c,
                      PredictColocation(built[0].graph, built[1].graph, policy, ShareRules{}));
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table = [&] { return ColocateAsText(c, args, session); },
             .json = [&] { return ColocateAsJson(c, args); },
             .csv = [&] { return MakeColocateTable(c, args, session.unit()).Csv(); },
             .markdown = [&] { return MakeColocateTable(c, args, session.unit()).Markdown(); }}));
  return Exit::kOk;
}

}  // namespace

const Command kColocateCommand = {
    .name = "colocate",
    .summary = "two recorded programs on one GPU: the step of both, and their throughput",
    .usage = "TRACE TRACE [--policy time|space]",
    .details =
        R"(Plays the typical step of both over and over, with processors of their own and one GPU,
and measures both while both run. The two traces may be one and the same. They have to be
recorded on the same kind of GPU. daydream explain colocate says how the GPU is shared.)",
    .examples =
        "daydream colocate train.ddtrace serve.ddtrace\n"
        "daydream colocate train.ddtrace train.ddtrace --policy space",
    .flags = kColocateFlags,
    .takes = {.traces = true, .result = true, .least = 2, .most = 2},
    .run = RunColocate,
};

}  // namespace daydream
