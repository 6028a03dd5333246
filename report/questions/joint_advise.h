// What to try next on ranks that are played together: the same search as for one rank.
#pragma once

#include <span>
#include <vector>

#include "report/questions/advise.h"
#include "report/questions/joint.h"

namespace daydream {

// What only several ranks can be asked: another network, and what is exchanged and when.
absl::StatusOr<std::vector<Application>> OptionsOfRanks(const JointRun& run);

// A prediction about all ranks as one of a step; the path is that of the slowest one alone.
Prediction AsPrediction(const JointAnswer& baseline, JointPrediction joint);

// Every option on all ranks, each edited as it would be alone. What is about the replay of one rank
// is empty in the result.
Advised AdviseRanks(const JointRun& run, const JointAnswer& baseline,
                    std::span<const Application> options, std::span<const Application> limits,
                    const AdviseOptions& advise = {});

// The slowest rank with a tenth less host or GPU work, as far as that changes it: which of both
// decides, not what to do.
absl::StatusOr<std::vector<Option>> SlowestMended(const JointRun& run, const JointAnswer& baseline);

}  // namespace daydream
