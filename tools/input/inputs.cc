#include "tools/input/inputs.h"

#include <cmath>
#include <future>
#include <utility>

#include "report/text/format.h"

namespace daydream {
namespace {

// Above this the replay is called out, as in the help of --max-replay-error.
constexpr double kReplayWarning = 0.03;

}  // namespace

absl::StatusOr<Inputs> LoadInputs(const std::string& path, const Args& args, Session& session) {
  Inputs in;
  DD_ASSIGN_OR_RETURN(in.trace, ReadTrace(path, args, session));
  session.Progress("building the graph", -1);
  auto blind = std::async(session.jobs() > 1 ? std::launch::async : std::launch::deferred,
                          [&] { return BuildFor(in.trace, args, {.lags = Lags::kTypical}); });
  auto built = BuildFor(in.trace, args);
  auto typical = blind.get();
  if (!built.ok()) return built.status();
  in.built = *std::move(built);
  DD_ASSIGN_OR_RETURN(in.replay, CheckReplay(in.built, typical.ok() ? &*typical : nullptr));
  return in;
}

absl::Status ReplayFailed(const ReplayCheck& replay, double limit, const std::string& path) {
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0602",
       .what = fmt::format("the replay of the unchanged trace is {} off",
                           FormatPercent(std::fabs(replay.error()))),
       .where = path,
       .why = "the dependency rules do not explain this trace",
       .effect = "predictions would be off by as much, so none is made",
       .fix = fmt::format("choose steps with --steps, or accept it with --max-replay-error {:.0f}%",
                          std::ceil(std::fabs(replay.error()) * 100) + (limit < 0 ? 1 : 0))});
}

void WarnAboutReplay(const ReplayCheck& replay, Session& session) {
  if (std::fabs(replay.error()) <= kReplayWarning) return;
  session.Warn({.code = "W0602",
                .what = fmt::format("the replay of the unchanged trace is {} off",
                                    FormatPercent(std::fabs(replay.error()))),
                .effect = "expect predictions to be off by as much"});
}

}  // namespace daydream
