#include "tools/sweep/together.h"

#include <fmt/format.h>

#include "tools/memory.h"

namespace daydream {

absl::Status CheckRanks(std::string_view command, std::string_view else_do) {
  const int ranks = LaunchedRanks();
  if (BuiltWithMpi() || ranks <= 1) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0706",
                     .what = fmt::format("one of {} ranks, but this program knows no MPI", ranks),
                     .why = "each of them would do all the work",
                     .fix = fmt::format("mpirun daydream-mpi {} ...{}", command, else_do)});
}

absl::StatusOr<Exit> RunTogether(Session& session,
                                 const std::function<absl::StatusOr<Exit>(World&)>& work) {
  World world;
  const bool first = world.first();
  if (!first) session.TellTo({.message = [](const Diagnostic&, Severity) {}, .progress = {}});
  auto exit = WithinMemory(session, nullptr, [&] { return work(world); });
  if (!first) session.TellTo({});
  const bool no_room = ExitOf(exit.status()) == Exit::kNoRoom;
  // One tells it: the first rank what is wrong with itself, or else what another one sends.
  if (!exit.ok() && !first) {
    world.Leave(exit.status());
    // Launchers kill the first rank, with its message, when another one fails.
    if (!no_room) return Exit::kOk;
  }
  // Which of several ranks it is that has no memory or no threads.
  if (no_room && !world.name().empty()) return ErrorOf(world.name(), exit.status());
  return exit;
}

}  // namespace daydream
