#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/output/report_page.h"

namespace daydream {
namespace {

constexpr auto kReportFlags = WithPageFlags(std::array{
    Flag{.name = "--output",
         .letter = 'o',
         .value = "FILE",
         .help = "the page to write, out.html; - = stdout"},
    Flag{.name = "--force-overwrite", .letter = 'f', .help = "replace the file if it exists"}});

absl::StatusOr<Exit> RunReport(const Args& args, Session& session) {
  if (!args.Has("--output")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "report needs the name of the page to write",
                       .fix = "-o report.html; or daydream view, which shows it"});
  }
  DD_ASSIGN_OR_RETURN(const ReportPage page, MakeReportPage(kReportCommand, args, session,
                                                            WhenInterrupted::kLeavesWhatIsDone));
  DD_RETURN_IF_ERROR(session.WriteResult(args, page.html));
  return page.exit;
}

}  // namespace

const Command kReportCommand = {
    .name = "report",
    .summary = "one HTML page to look at and to pass on",
    .usage = "TRACE [--opt SPEC]... -o FILE.html",
    .details =
        R"(The page opens in any browser, without a network: it is one file that loads nothing. It
holds what is wrong with the recording, predictions with their intervals, causes, the steps,
tables by layer, operator and kernel, the roofline, and timelines before and after. All
numbers stand in it as JSON, those of whatif, summary and advise. Names of the trace are in
it: kernels, operators, layers and files.

Without --opt the page shows what advise would try. A folder of ranks has a part about who
waits for whom; its step times, its advice and the exit code are those of all ranks together,
all else is one rank alone. Given the JSON of
sweep or scale instead of a trace, the page has heat maps, what is best for time and
memory, and scaling curves. The timelines take about 1 MB of the file at most: beyond
--max-slices, or 2.2 bytes for each of them, short neighbours are drawn as one, and the page
says below which length. Exit code 4, as of whatif: the replay is too far off, or a part of a
scenario finds nothing to change; the page is written all the same. Ctrl-C leaves a page of
the scenarios, or options, that are done, which says so at its head, without the tables and
timelines that are not made by then; again, it ends at once.)",
    .examples =
        "daydream report run.ddtrace --opt amp,fuse -o report.html\n"
        "daydream report run.ddtrace -o report.html\n"
        "daydream report run.ddtrace --opt amp --measured with-amp.ddtrace -o report.html\n"
        "daydream report sweep.json -o sweep.html",
    .flags = kReportFlags,
    .takes = {.traces = true, .least = 1, .most = 1},
    .run = RunReport,
};

}  // namespace daydream
