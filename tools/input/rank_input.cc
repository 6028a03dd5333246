#include "tools/input/rank_input.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "report/text/format.h"
#include "trace/foreign/folder.h"
#include "trace/join/ranks.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// How many ranks were aligned in which way, and the worst of them.
void TellClocks(const MergedRanks& merged, Session& session) {
  size_t same = 0, by_wall = 0, by_collectives = 0, fewest = SIZE_MAX;
  Duration spread;
  for (size_t i = 0; i < merged.clocks.size(); ++i) {
    const RankClock& c = merged.clocks[i];
    same += c.basis == ClockBasis::kSame;
    by_wall += c.basis == ClockBasis::kWall;
    if (c.basis == ClockBasis::kCollectives) {
      ++by_collectives;
      fewest = std::min(fewest, c.collectives);
      spread = std::max(spread, c.spread);
    }
    if (c.basis != ClockBasis::kNone) continue;
    session.Warn(
        {.code = "W0433",
         .what = fmt::format("the clock of {} is not aligned with the others", NameOf(c.rank, i)),
         .where = c.file,
         .why = "no common clock, and fewer than four equal collectives",
         .effect = "its times count from its own beginning"});
  }
  std::string text = fmt::format("{} traces of one run", merged.clocks.size());
  if (same > 1) text += fmt::format(", {} on one clock", same);
  if (by_collectives > 0) {
    text += fmt::format(", {} aligned by {} or more, whose ends are {} apart", by_collectives,
                        Plural(fewest, "collective"), FormatTime(spread));
  }
  if (by_wall > 0) text += fmt::format(", {} aligned by wall clocks, to some ms", by_wall);
  session.Note(text);
}

}  // namespace

std::string NameOf(const Rank& rank, size_t place) {
  return rank.rank >= 0 ? fmt::format("rank {}", rank.rank) : fmt::format("process {}", place);
}

absl::StatusOr<std::vector<std::string>> FilesOfRun(const std::string& folder, Session& session) {
  DD_ASSIGN_OR_RETURN(FolderTraces traces, FindTraces(folder));
  if (!traces.not_read.empty()) {
    session.Note(fmt::format("not read beside {}: {} of another kind, the first {}",
                             Plural(traces.files.size(), "trace"),
                             Plural(traces.not_read.size(), "file"),
                             fs::path(traces.not_read[0]).filename().string()));
  }
  return std::move(traces.files);
}

absl::StatusOr<std::shared_ptr<const Trace>> ReadRanks(const std::vector<std::string>& files,
                                                       const std::string& name, const ReadOne& read,
                                                       Session& session) {
  if (files.size() == 1) return read(files[0]);
  std::vector<RankTrace> ranks;
  for (const std::string& file : files) {
    RankTrace& rank = ranks.emplace_back();
    rank.file = file;
    DD_ASSIGN_OR_RETURN(rank.trace, read(file));
    constexpr int64_t kNoLimit = int64_t{1} << 40;  // it reads the beginning only
    DD_ASSIGN_OR_RETURN(auto source, OpenFile(file, kNoLimit));
    DD_ASSIGN_OR_RETURN(rank.process, ReadRecordedProcess(*source));
  }
  DD_ASSIGN_OR_RETURN(MergedRanks merged, MergeRanks(std::move(ranks), name));
  TellClocks(merged, session);
  return merged.trace;
}

absl::StatusOr<size_t> FindRank(std::string_view wanted, const std::vector<Rank>& ranks,
                                const std::string& where) {
  int32_t number = -1;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  const auto found =
      std::find_if(ranks.begin(), ranks.end(), [&](const Rank& r) { return r.rank == number; });
  const bool good = error == std::errc() && end == wanted.data() + wanted.size() && number >= 0;
  if (good && found != ranks.end()) return static_cast<size_t>(found - ranks.begin());
  std::string there;
  for (size_t i = 0; i < ranks.size(); ++i) there += (i == 0 ? "" : ", ") + NameOf(ranks[i], i);
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0432",
                     .what = fmt::format("there is no rank '{}' in this trace", wanted),
                     .where = where,
                     .why = "it holds " + there,
                     .fix = "--rank auto, or one of these numbers"});
}

absl::StatusOr<std::shared_ptr<const Trace>> ChooseRank(std::shared_ptr<const Trace> trace,
                                                        const Args& args, Session& session,
                                                        bool folder) {
  const std::string_view wanted = args.Get("--rank");
  const std::vector<Rank>& ranks = trace->ranks;
  size_t index = 0;
  if (wanted == "auto" || wanted.empty()) {
    if (ranks.size() == 1) return trace;
    index = LastToArrive(*trace);
    const auto work = WorkOfRanks(*trace);
    const bool wait =
        std::ranges::any_of(work, [](const RankWork& of) { return of.collectives > Duration{}; });
    session.Note(
        fmt::format("{}{} of {} is looked at{}; --rank R takes another{}",
                    folder ? "for what is of one rank alone, " : "", NameOf(ranks[index], index),
                    ranks.size(), wait ? ", which waits least for the others" : "",
                    wait && folder ? ", and whatif plays all together, as does daydream ranks"
                    : wait ? ", and whatif --peers joint plays all together, as does daydream ranks"
                           : ", alone as well: no collective tells how they wait for each other"));
  } else {
    DD_ASSIGN_OR_RETURN(index, FindRank(wanted, ranks, trace->provenance.source));
  }
  if (ranks.size() == 1) return trace;
  return TakeRank(*trace, index);
}

}  // namespace daydream
