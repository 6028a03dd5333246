// A command that all ranks of an MPI program work at, and that the first of them talks for.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "tools/session.h"
#include "tools/sweep/world.h"

namespace daydream {

// E0706 for one of several ranks of a program without MPI, each of which would do all the work.
// `else_do`: what helps beside "mpirun daydream-mpi COMMAND ...".
absl::Status CheckRanks(std::string_view command, std::string_view else_do);

// Joins the others and does `work`, with the errors of WithinMemory(). What the others have to say
// is told by the first, or not at all, but for a host without room, which has its rank's name.
absl::StatusOr<Exit> RunTogether(Session& session,
                                 const std::function<absl::StatusOr<Exit>(World&)>& work);

}  // namespace daydream
