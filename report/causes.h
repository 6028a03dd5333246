// Splits the effect of one transform over the causes it named.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/what_if.h"

namespace daydream {

// Distributes `delta` (change of the step time by one application) over `causes`. Each cause is
// weighed by its change of host and GPU time per step; the side that holds less of the critical
// path counts less, in proportion. No cause gets more than its own change of time. The
// rest, positive or negative, goes to "(joint)". The parts sum to `delta` exactly.
std::vector<CauseShare> SplitByCause(Duration delta, std::string_view opt,
                                     std::span<const Editor::Cause> causes, size_t steps,
                                     const BoundBy& path);

}  // namespace daydream
