// The steady step of ranks that are played together: what happened once on one of them is no part
// of what is predicted, as for one rank (report/questions/steady.cc).
#pragma once

#include "base/status.h"
#include "report/questions/joint.h"

namespace daydream {

// Fills `run.findings`, the worst of each kind with its rank, and takes one-time stalls of every
// rank out of `run.built`, which fills `run.steady`: what others did meanwhile is known here, for
// they are played, too. Nothing is taken where the step is hardly shorter without, where what
// remains is no step, and where some ranks were not recorded: those came when they came, whatever
// is taken. What holds operators up again and again is how this machine runs the step, and stays as
// waits, as of one rank alone.
absl::Status MakeRanksSteady(JointRun& run, unsigned jobs);

}  // namespace daydream
