// Why ranks that are played together take another step: parts that sum to the difference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/predict/causes.h"
#include "report/questions/joint.h"

namespace daydream {

// The step is the slowest rank's own, by what its longest path consists of, and what ranks wait for
// one another beside. So it changes by what became of the rank that was the slowest, by another
// one that is the slowest now, and by the waits. `opt` is what changed it. The deltas sum to
// after.step - before.step to the nanosecond; those of no length are left out. O(ranks).
std::vector<CauseShare> ShareByRank(const JointRun& run, const JointAnswer& before,
                                    const JointAnswer& after, std::string_view opt);

// Rows of equal text and option as one, largest first.
void MergeShares(std::vector<CauseShare>& shares);

}  // namespace daydream
