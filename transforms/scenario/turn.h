// The order in which the optimizations of a scenario are applied, whatever the order in which they
// were asked for.
#pragma once

#include <vector>

#include "transforms/scenario/scenario.h"

namespace daydream {

// Where `a` stands among others: as in Transforms(); options of files share one place, the first.
size_t TurnOf(const Application& a);

// Puts a scenario into that order. Lists that differ in their order alone become the same; what is
// there twice, and files, keep the order in which they were given.
void PutInTurn(std::vector<Application>& scenario);

}  // namespace daydream
