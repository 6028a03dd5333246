#include "report/text/format.h"
#include "tools/command.h"
#include "tools/input/input.h"
#include "tools/input/rank_input.h"
#include "trace/ddtrace/writer.h"
#include "trace/foreign/folder.h"
#include "trace/importer.h"
#include "trace/steps.h"

namespace daydream {
namespace {

constexpr Flag kImportFlags[] = {
    {.name = "--output",
     .letter = 'o',
     .value = "FILE",
     .help = "the file to write (default: the name of the input with .ddtrace)"},
    {.name = "--force-overwrite", .letter = 'f', .help = "replace the file if it exists"},
};

// What can be read, who writes it, and how to record it best.
std::string ListOfFormats() {
  std::string out;
  for (const Importer* importer : Importers()) {
    const RecorderFacts& recorder = importer->recorder;
    out += fmt::format("{}\n  written by   {}\n  record with  {}\n  answers      {}\n",
                       importer->name, recorder.writer, recorder.record, recorder.answers);
  }
  return out;
}

absl::StatusOr<Exit> RunImport(const Args& args, Session& session) {
  if (args.Get("--from") == "list") {
    DD_RETURN_IF_ERROR(session.WriteResult(args, ListOfFormats()));
    return Exit::kOk;
  }
  if (args.positional().empty()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0107",
                       .what = "which trace?",
                       .fix = "daydream import TRACE..., or daydream import --from list"});
  }
  std::string input = args.positional()[0];
  DD_ASSIGN_OR_RETURN(std::shared_ptr<const Trace> trace,
                      ReadTraces(args.positional(), args, session));
  if (args.Get("--rank") != "auto") {
    DD_ASSIGN_OR_RETURN(trace, ChooseRank(std::move(trace), args, session));
  }
  std::string output(args.Get("--output"));
  while (input.size() > 1 && input.ends_with('/')) input.pop_back();
  if (output.empty()) output = NameOfImported(input == "-" ? "stdin" : input);
  session.Progress("packing the trace");
  DD_ASSIGN_OR_RETURN(std::string bytes, SerializeDdtrace(*trace));
  if (output == "-") {
    DD_RETURN_IF_ERROR(session.WriteBytes(args, bytes));
  } else {
    session.Progress(fmt::format("writing {}", output));
    DD_RETURN_IF_ERROR(WriteFile(output, bytes, args.Has("--force-overwrite")));
    session.EndProgress();
  }
  Steps steps = FindSteps(*trace);
  session.Note(fmt::format("wrote {} ({}): {}, {}, {}", output, FormatBytes(bytes.size()),
                           trace->provenance.format, Plural(steps.measured(), "step"),
                           Plural(trace->rows(), "event")));
  session.Next(fmt::format("daydream info {}", output));
  return Exit::kOk;
}

}  // namespace

const Command kImportCommand = {
    .name = "import",
    .summary = "convert any supported trace to .ddtrace",
    .usage = "TRACE... [-o FILE]",
    .details =
        R"(Every command reads every supported format directly; importing once makes later reading
faster and the file smaller. Malformed events are counted, reported and left out; more
than --max-errors of them fail the import. '-' reads standard input. A folder, or several
traces, are the ranks of one run: they become one trace, with their clocks aligned.)",
    .examples =
        "daydream import run.pt.trace.json.gz -o run.ddtrace\n"
        "zcat run.json.gz | daydream import - -o run.ddtrace\n"
        "daydream import --from list\n"
        "daydream import run.rank0.ddtrace run.rank1.ddtrace -o run.ddtrace",
    .flags = kImportFlags,
    .takes = {.traces = true, .steps = false, .most = kAny},  // --from list needs none
    .run = RunImport,
};

}  // namespace daydream
