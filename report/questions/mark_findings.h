// What is wrong with the marks of steps.
#pragma once

#include <vector>

#include "report/questions/findings.h"
#include "trace/steps.h"

namespace daydream {

// Of marks that are missing, or that end early.
std::vector<Finding> FindingsOfMarks(const Steps& steps);

// Of marks that cut through the work: they begin in the middle of an operator, or the
// backward pass of a step is that of an earlier step's forward pass.
// O(rows log rows).
std::vector<Finding> FindingsOfMovedMarks(const Steps& steps, const Trace& trace);

}  // namespace daydream
