// Marks of steps that are missing, or that end before their step does.
#pragma once

#include <vector>

#include "graph/build.h"
#include "report/questions/findings.h"

namespace daydream {

std::vector<Finding> FindingsOfMarks(const Steps& steps);

}  // namespace daydream
