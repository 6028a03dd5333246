#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "report/text/format.h"
#include "tools/command.h"
#include "tools/record/doctor.h"
#include "tools/record/options.h"
#include "tools/record/output_pattern.h"
#include "tools/record/report.h"
#include "tools/record/run_command.h"
#include "tools/record/session.h"

namespace daydream {
namespace {

const char* OwnVariable(const char* name) { return std::getenv(name); }

absl::StatusOr<OutputPattern> PatternOf(const Args& args) {
  std::string given(args.Get("--output"));
  if (given.empty() || given.ends_with('/')) given += DefaultPattern(args.positional());
  return OutputPattern::Parse(given, OwnVariable);
}

void WarnAboutStubs(const Environment& environment, Session& session) {
  std::string folder = StubFolder(environment);
  if (folder.empty()) return;
  session.Warn({.code = "W0506",
                .what = "LD_LIBRARY_PATH has a folder of driver stubs",
                .where = folder,
                .why = "they are for linking only; a program that loads them finds no GPU",
                .fix = "take the folder out of LD_LIBRARY_PATH"});
}

// The reports of the files, which also learn their ranks and whether they hold GPU work.
std::vector<RecordingReport> Read(std::vector<RecordedFile>& files, Session& session) {
  std::vector<RecordingReport> reports;
  for (RecordedFile& file : files) {
    session.Progress(fmt::format("reading {}", file.path));
    auto report = ReadRecording(file.path);
    session.EndProgress();
    if (!report.ok()) {
      session.Warn({.code = "W0508",
                    .what = "a recording cannot be read",
                    .where = file.path,
                    .why = DiagnosticOf(report.status()).what});
      reports.push_back({.path = file.path});
      file.has_gpu_work = true;  // for all we know
      continue;
    }
    file.rank = report->rank;
    file.has_gpu_work = report->gpu_work() > 0;
    reports.push_back(*std::move(report));
  }
  return reports;
}

void WarnAboutNothing(const std::vector<RecordingReport>& reports,
                      const std::vector<std::string>& refusals, Session& session) {
  Diagnostic d{.code = "W0507", .what = "no GPU work was recorded"};
  const auto refused = std::find_if(reports.begin(), reports.end(), [](const RecordingReport& r) {
    return !r.without_cupti.empty();
  });
  if (refused != reports.end()) {
    d.why = refused->without_cupti;
    d.effect = "the marks of the program were recorded, its GPU work was not";
    d.fix = "put that right and record again; daydream doctor looks at driver, CUPTI and others";
  } else if (!refusals.empty()) {
    d.why = refusals[0];
    d.fix = "make room there, or choose another disk with -o";
  } else if (reports.empty()) {
    d.why =
        "no process of the command used CUDA, --ranks leaves those out that did, or the recorder "
        "could not get into them";
    d.fix = "daydream doctor looks whether recording can work here";
  } else if (std::ranges::any_of(reports, [](const auto& r) { return r.kernels + r.copies > 0; })) {
    d.what = "no GPU work can be told from this recording";
    d.why = "what ran on the GPU in the recorded range was launched before it";
    d.effect = "without its launches nothing tells what waits for what";
    d.fix = "--capture-range none records all of it; or more --steps";
  } else {
    d.why = "the program did no GPU work in the recorded range";
    d.fix = "--capture-range none records all of it";
  }
  session.Warn(d);
}

// Files of processes that only made marks (launchers, data loaders) say nothing beside those of
// processes that used the GPU. One with steps, calls or losses does: its GPU work is missing.
void DropMarksOnly(std::vector<RecordedFile>& files, std::vector<RecordingReport>& reports,
                   Session& session) {
  auto has_work = [](const RecordedFile& f) { return f.has_gpu_work; };
  auto is_telling = [](const RecordingReport& r) {
    return r.calls > 0 || r.lost > 0 || r.cost.steps_with + r.cost.steps_without > 0;
  };
  if (std::none_of(files.begin(), files.end(), has_work)) return;
  size_t dropped = 0;
  for (size_t i = files.size(); i-- > 0;) {
    if (files[i].has_gpu_work || is_telling(reports[i])) continue;
    if (unlink(files[i].path.c_str()) != 0) continue;
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    reports.erase(reports.begin() + static_cast<std::ptrdiff_t>(i));
    ++dropped;
  }
  if (dropped > 0) {
    session.Note(fmt::format("{} made marks but used no GPU; not kept",
                             dropped == 1 ? "1 process" : fmt::format("{} processes", dropped)));
  }
}

void Announce(const std::vector<RecordingReport>& reports, Session& session) {
  for (const RecordingReport& r : reports) {
    session.Note(fmt::format("wrote {} ({})", r.path, FormatBytes(r.bytes)));
    if (r.lost == 0) continue;
    session.Warn({.code = "W0509",
                  .what = "a recording is not complete",
                  .where = r.path,
                  .why = r.loss,
                  .fix = r.disk_full ? "make room on the disk, or choose another one with -o"
                                     : "record fewer steps, or CUDA graphs as a whole: "
                                       "--cuda-graph graph; a process that still runs has to end "
                                       "before the command does"});
  }
  session.Screen(RecordingScreen(reports));
}

// What happens when the command has ended: names, screen, warnings.
void Finish(const RecordSession& record, Session& session) {
  std::vector<RecordedFile> files = record.Files();
  const std::vector<std::string> refusals = record.TakeRefusals();
  std::vector<RecordingReport> reports = Read(files, session);
  DropMarksOnly(files, reports, session);
  absl::Status named = record.Name(files);
  for (size_t i = 0; i < files.size(); ++i) reports[i].path = files[i].path;
  Announce(reports, session);
  if (!named.ok()) {
    session.Warn({.code = "W0508",
                  .what = "a recording did not get its name and stays where it is",
                  .where = record.folder(),
                  .why = DiagnosticOf(named).what + ": " + DiagnosticOf(named).why});
  } else if (!record.RemoveFolder()) {
    session.Warn({.code = "W0508",
                  .what = "the folder of the recording is not empty and stays",
                  .where = record.folder()});
  }
  bool any =
      std::any_of(files.begin(), files.end(), [](const RecordedFile& f) { return f.has_gpu_work; });
  if (!any) return WarnAboutNothing(reports, refusals, session);
  session.Next(fmt::format("daydream whatif {} --opt amp,fuse", files[0].path));
}

absl::StatusOr<Exit> RunTrace(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(RecordOptions options, ParseRecordOptions(args));
  if (args.Has("--check")) return FindCommand("doctor")->run(args, session);
  if (args.positional().empty()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0107",
                       .what = "daydream trace needs a command",
                       .fix = "daydream trace [FLAG...] -- COMMAND [ARGUMENT...]"});
  }
  DD_ASSIGN_OR_RETURN(OutputPattern pattern, PatternOf(args));
  RecorderFiles files = FindRecorderFiles();
  DD_RETURN_IF_ERROR(CheckRecorder(files));
  Environment own = CurrentEnvironment();
  // Others in the environment come before the GPU: they say more about what is wrong.
  DD_RETURN_IF_ERROR(RecordingEnvironment(own, options, files, "", "").status());
  DD_RETURN_IF_ERROR(CheckGpu(AskDriver()));
  DD_ASSIGN_OR_RETURN(auto record, RecordSession::Begin(std::move(pattern), RankOf(OwnVariable),
                                                        args.Has("--force-overwrite")));
  DD_ASSIGN_OR_RETURN(Environment environment,
                      RecordingEnvironment(own, options, files, record.folder(), record.id()));
  WarnAboutStubs(environment, session);
  auto end = RunCommand(args.positional(), AsList(environment));
  if (!end.ok()) {
    record.RemoveFolder();
    return end.status();
  }
  Finish(record, session);
  return static_cast<Exit>(end->exit);
}

}  // namespace

const Command kTraceCommand = {
    .name = "trace",
    .summary = "run a program and record its GPU work",
    .usage = "[FLAG...] [--] COMMAND [ARGUMENT...]",
    .details =
        R"(Runs COMMAND with a recorder inside and writes one .ddtrace for every process that used
the GPU. COMMAND needs no change; its input, output, signals and exit code pass through.
Steps are counted by PyTorch's optimizer, daydream_step() (daydream_mark.h) or NVTX ranges
like "step 12"; without any, all of the run is recorded. Several ranks get one file each,
with .rank0, .rank1... in the name. Exits with the code of COMMAND, 128+n when signal n
ended it, 125 when it was not started (no GPU, no driver, another profiler, a bad flag),
126 when it cannot be executed, 127 when there is no such command. docs/recorder.md says
what is recorded, how, and what it costs.)",
    .examples =
        "daydream trace -- python train.py --batch 16\n"
        "daydream trace -o run-%n --warmup 20 --steps 5 -- torchrun --nproc-per-node 4 train.py\n"
        "daydream trace --capture-range none ./simulate\n"
        "daydream trace --delay 60 --duration 5 -- python serve.py",
    .flags = RecordFlags(),
    .takes = {.command = true, .most = kAny},
    .run = RunTrace,
};

}  // namespace daydream
