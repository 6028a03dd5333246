// `summary --per-step`: each step that counts by itself.
#pragma once

#include <string>
#include <vector>

#include "report/questions/findings.h"
#include "report/summary.h"
#include "report/text/format.h"
#include "report/text/table.h"

namespace daydream {

struct StepsReport {
  const Graph* graph = nullptr;
  std::vector<StepSummary> steps;  // as recorded, stalls included
  std::vector<Finding> findings;
  Stalls stalls;
};

// One row a step and their mean, shares of each step's own length.
Table StepsTable(const StepsReport& report, TimeUnit wish);
// What the table cannot hold: a picture of the lengths, what makes them unequal, what is left out.
std::string StepsRemarks(const StepsReport& report, TimeUnit wish);
std::string StepsJson(const StepsReport& report);
// Tidy: one row a step, times in ns.
std::string StepsCsv(const StepsReport& report);

}  // namespace daydream
