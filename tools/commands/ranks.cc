// daydream ranks: who waits for whom in a run of several ranks.
#include "report/text/format.h"
#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/input/joint_input.h"
#include "tools/output/joint_questions.h"

namespace daydream {
namespace {

absl::StatusOr<Exit> RunRanks(const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(const JointInput in, LoadJoint(args.positional()[0], args, session));
  DD_ASSIGN_OR_RETURN(const JointReport report,
                      PredictOnRanks(in, args.positional()[0], {}, "all"));
  DD_RETURN_IF_ERROR(
      session.WriteResult(args, {.table = [&] { return RanksText(report, session); },
                                 .json = [&] { return RanksJson(report); },
                                 .csv = [&] { return RanksTable(report, session.unit()).Csv(); },
                                 .markdown = [&] { return RanksMarkdown(report, session); }}));
  // The table has them, too.
  const bool told = args.Get("--format") == "table" && !args.Has("--output");
  for (const RankProblem& p : in.run.matched.problems) {
    if (!told)
      session.Warn(
          {.code = "W0436", .what = fmt::format("{}: {}", ProblemName(p.kind), p.message)});
  }
  session.Next(
      fmt::format("daydream whatif {} --opt '{}'", args.positional()[0], OptionOfBound(report)));
  return Exit::kOk;
}

const Flag kRanksFlags[] = {kClockFlag, kKeepRecordingCostFlag};

}  // namespace

const Command kRanksCommand = {
    .name = "ranks",
    .summary = "who waits for whom in a run of several ranks",
    .usage = "DIR [--clock HOW] [--format json]",
    .details =
        R"(Reads the traces of the ranks of one run, matches their collectives, and plays the ranks
together: a collective ends when its last member has come and the transfer is over. Says
for each rank how long it takes alone, what it waits and transfers, and how often the
others waited for it; which rank or what bounds the step; and what does not fit.
The last to arrive need not be the slowest: a rank that began late arrives late.)",
    .examples =
        "daydream ranks profiles/\n"
        "daydream ranks profiles/ --format json",
    .flags = kRanksFlags,
    .takes = kOneTrace,
    .run = RunRanks,
};

}  // namespace daydream
