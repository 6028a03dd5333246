// The steps of one rank, as what options are tried on.
#pragma once

#include <memory>

#include "report/predict/predict.h"
#include "report/questions/advise.h"

namespace daydream {

// Keeps references to all three.
std::unique_ptr<TriedProgram> StepsOfOneRank(const Baseline& base, const ReplayCheck& replay,
                                             const AdviseOptions& advise);

}  // namespace daydream
