#include "tools/input/joint_input.h"

#include <algorithm>
#include <filesystem>

#include "report/questions/joint_steady.h"
#include "report/questions/joint_unrecorded.h"
#include "report/text/format.h"
#include "tools/input/input.h"
#include "tools/input/rank_input.h"
#include "tools/memory.h"
#include "trace/bytes/source.h"
#include "trace/ddtrace/process.h"
#include "trace/foreign/folder.h"
#include "trace/join/ranks.h"

namespace daydream {
namespace {

constexpr std::string_view kClocks[] = {"auto", "wall", "ends", "none"};

absl::Status CheckRun(const std::vector<RankTrace>& ranks) {
  // Without any number the order of the files is that of the ranks.
  const auto numbered = [](const RankTrace& r) { return r.trace->ranks[0].rank >= 0; };
  if (std::none_of(ranks.begin(), ranks.end(), numbered)) return CheckCopies(ranks);
  return CheckOneRun(ranks);
}

absl::StatusOr<std::vector<RankTrace>> ReadEach(const std::string& path, const Args& args,
                                                Session& session) {
  std::vector<std::string> files = {path};
  if (std::filesystem::is_directory(path)) {
    DD_ASSIGN_OR_RETURN(files, FilesOfRun(path, session));
  }
  std::vector<RankTrace> ranks;
  DD_ASSIGN_OR_RETURN(const auto traces, ReadSideBySide(files, args, session));
  // Where memory ends from here on, no single file is why.
  session.Progress(fmt::format("playing the ranks of {} together", path));
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& file = files[i];
    const std::shared_ptr<const Trace>& trace = traces[i];
    constexpr int64_t kNoLimit = int64_t{1} << 40;  // it reads the beginning only
    DD_ASSIGN_OR_RETURN(auto source, OpenFile(file, kNoLimit));
    DD_ASSIGN_OR_RETURN(RecordedProcess process, ReadRecordedProcess(*source));
    for (size_t r = 0; r < trace->ranks.size(); ++r) {
      RankTrace& one = ranks.emplace_back(RankTrace{file, trace, process});
      if (trace->ranks.size() == 1) continue;
      DD_ASSIGN_OR_RETURN(one.trace, TakeRank(*trace, r));
    }
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankTrace& a, const RankTrace& b) {
    return a.trace->ranks[0].rank < b.trace->ranks[0].rank;
  });
  DD_RETURN_IF_ERROR(CheckRun(ranks));
  return ranks;
}

// When each trace begins, as far as the clocks tell; and how sure that is.
enum class Told : uint8_t { kOneClock, kWall, kNothing };
Told BeginsOf(const std::vector<RankTrace>& ranks, std::vector<Duration>& begins) {
  bool boot = true, wall = true, origin = true;
  for (const RankTrace& r : ranks) {
    boot &= !r.process.boot.empty() && r.process.boot == ranks[0].process.boot;
    wall &= r.process.wall_offset_ns.has_value();
    origin &= !r.process.wall_offset_ns && r.trace->clock_origin_ns != 0;
  }
  // Clocks that count from different instants are no common clock: no two ranks of a run begin a
  // day apart.
  constexpr int64_t kDay = int64_t{86'400} * 1'000'000'000;
  bool near = true;
  for (const RankTrace& r : ranks) {
    int64_t since = r.trace->clock_origin_ns - ranks[0].trace->clock_origin_ns;
    if (wall && !boot) since += *r.process.wall_offset_ns - *ranks[0].process.wall_offset_ns;
    near &= since < kDay && since > -kDay;
    begins.push_back(Duration{since});
  }
  if (boot && near) return Told::kOneClock;
  if ((wall || origin) && near) return Told::kWall;
  std::fill(begins.begin(), begins.end(), Duration{});
  return Told::kNothing;
}

absl::Status BadChoice(std::string what, std::string why, std::string fix) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104", .what = std::move(what), .why = std::move(why), .fix = std::move(fix)});
}

absl::Status IsOneRank(std::string_view asked, const std::string& path) {
  return BadChoice(fmt::format("{} is about ranks that are played together", asked),
                   fmt::format("{} is one", path),
                   "a folder with the traces of all ranks, or a file that holds them");
}

}  // namespace

const Flag kClockFlag = {.name = "--clock",
                         .value = "HOW",
                         .help = "how clocks of ranks are brought together",
                         .fallback = "auto",
                         .choices = kClocks};

bool HoldsRanks(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return false;
  const auto files = TracesOfFolder(path);
  return files.ok() && files->size() > 1;
}

bool WasGiven(std::string_view flag, const Args& args) {
  return args.Has(flag) && !args.IsDefault(flag);
}

absl::Status CheckAboutAllRanks(const Args& args, std::span<const std::string_view> of_one_rank) {
  for (std::string_view flag : of_one_rank) {
    if (!WasGiven(flag, args)) continue;
    return BadChoice(
        fmt::format("{} is about one rank", flag),
        fmt::format("{} holds several, which are played together", args.positional()[0]),
        fmt::format("--rank R with it, or leave {} away", flag));
  }
  return absl::OkStatus();
}

std::string_view AsksForAll(const Args& args) {
  if (WasGiven("--on", args)) return "--on";
  const bool joint = WasGiven("--peers", args) && args.Get("--peers") == "joint";
  return joint ? "--peers joint" : "";
}

absl::StatusOr<bool> PlaysRanks(const Args& args) {
  // What answers with the waits of one rank, as they were recorded.
  constexpr std::string_view kOfOneRank[] = {"--by",    "--timeline", "--true-step", "--samples",
                                             "--steps", "--measured", "--learn",     "--learned"};
  const std::string& path = args.positional()[0];
  const std::string_view peers = args.Get("--peers"), all = AsksForAll(args);
  const bool recorded = peers == "recorded";
  const bool one = args.Has("--rank") || (peers != "joint" && !recorded);
  if (!all.empty() && one) {
    const std::string other =
        args.Has("--rank") ? "--rank" : fmt::format("--peers {}", args.Get("--peers"));
    return BadChoice(fmt::format("{} does not go with {}", all, other),
                     fmt::format("{} plays ranks together, {} looks at one", all, other),
                     "leave one of them away");
  }
  if (recorded && !args.Has("--rank") && HoldsRanks(path)) {
    return BadChoice("--peers recorded is about one rank",
                     fmt::format("{} holds several, which are played together", path),
                     "--rank R with it, or leave --peers away");
  }
  if (!HoldsRanks(path) && !recorded) {
    if (all.empty()) return false;
    if (std::filesystem::is_directory(path)) return IsOneRank(all, path);
    // Whether a file holds several is known when it is read.
  }
  if (one && !recorded) return false;
  if (!recorded) DD_RETURN_IF_ERROR(CheckAboutAllRanks(args, kOfOneRank));
  for (std::string_view flag : kOfOneRank) {
    if (!WasGiven(flag, args)) continue;
    return BadChoice(fmt::format("--peers recorded has no {}", flag),
                     "it plays what waits for other ranks, which that flag does not see",
                     "--peers waits, or without " + std::string(flag));
  }
  return true;
}

absl::StatusOr<JointInput> LoadJoint(const std::string& path, const Args& args, Session& session,
                                     std::string_view asked) {
  if (args.Has("--steps")) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = "--steps is about one rank",
                       .why = "ranks are played together over all steps that all of them recorded",
                       .fix = "leave it away; or daydream whatif with --rank R"});
  }
  DD_ASSIGN_OR_RETURN(std::vector<RankTrace> ranks, ReadEach(path, args, session));
  if (!asked.empty() && ranks.size() == 1) return IsOneRank(asked, path);
  if (const std::string_view wanted = args.Get("--rank"); !wanted.empty() && wanted != "auto") {
    std::vector<Rank> numbers;
    numbers.reserve(ranks.size());
    for (const RankTrace& r : ranks) numbers.push_back(r.trace->ranks[0]);
    DD_ASSIGN_OR_RETURN(const size_t index, FindRank(wanted, numbers, path));
    ranks = {ranks[index]};
  }
  std::vector<Duration> begins;
  Told told = BeginsOf(ranks, begins);
  const std::string_view how = args.Get("--clock");
  if (how == "none") std::fill(begins.begin(), begins.end(), Duration{});
  const bool ends = how == "ends" || (how != "none" && how != "wall" && told != Told::kOneClock);
  JointInput in;
  in.jobs = session.jobs();
  std::vector<std::shared_ptr<const Trace>> traces;
  for (RankTrace& r : ranks) {
    in.files.push_back(r.file);
    traces.push_back(std::move(r.trace));
  }
  WarnAboutMemory(traces, session);
  DD_ASSIGN_OR_RETURN(
      in.run, MakeJointRun(std::move(traces), begins,
                           ends ? AlignClocks::kEnds : AlignClocks::kGiven, session.jobs()));
  DD_RETURN_IF_ERROR(MakeRanksSteady(in.run, session.jobs()));
  if (!args.Has("--keep-recording-cost")) {
    DD_RETURN_IF_ERROR(LeaveOutRecording(in.run, session.jobs()));
  }
  in.clock = in.run.built.size() < 2 ? "one rank: its clock is all there is"
             : ends ? fmt::format("clocks aligned by the ends of {}, which are {} apart (p95 {})",
                                  Plural(in.run.clocks.rows, "collective"),
                                  FormatTime(in.run.clocks.spread, session.unit()),
                                  FormatTime(in.run.clocks.spread95, session.unit()))
             : how == "none"           ? "clocks not aligned: each trace begins at 0"
             : told == Told::kOneClock ? "one machine, one clock"
             : told == Told::kWall     ? "clocks as the machines have them"
                                       : "clocks not aligned: nothing is known of them";
  return in;
}

std::optional<Duration> StepOfFolder(const std::string& folder, const Args& args,
                                     Session& session) {
  constexpr uintmax_t kMostBytes = 16 << 20;  // packed JSON of so much takes 1.5 s
  const auto files = TracesOfFolder(folder);
  if (!files.ok()) return std::nullopt;
  uintmax_t bytes = 0;
  for (const std::string& file : *files) {
    std::error_code unknown;
    const uintmax_t size = std::filesystem::file_size(file, unknown);
    bytes += unknown ? kMostBytes + 1 : size;
    if (bytes > kMostBytes) return std::nullopt;
  }
  session.Progress(fmt::format("playing the ranks of {} together", folder));
  Session silent;
  silent.Configure(args);
  silent.TellTo({.message = [](const Diagnostic&, Severity) {}, .progress = [] {}});
  const auto in = LoadJoint(folder, args, silent);
  if (!in.ok()) return std::nullopt;
  const auto answer = PlayJoint(in->run, TransferFrom::kClass, {}, in->jobs);
  return answer.ok() ? std::optional(answer->step) : std::nullopt;
}

}  // namespace daydream
