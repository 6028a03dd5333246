// The result of `sweep` as text, JSON and CSV; all of it follows from the rows.
#pragma once

#include <string>
#include <vector>

#include "report/questions/sweep.h"
#include "report/questions/sweep_values.h"
#include "report/text/json_writer.h"
#include "tools/session.h"

namespace daydream {

struct SweepResult {
  SweepHead head;
  SweepPlan plan;
  std::vector<SweepRow> rows;  // by index; of a shard, or of all
  std::string pareto;          // goals of --pareto, "step,memory", or ""
  std::vector<bool> front;     // with --pareto, by row: no other one beats it
  bool interrupted = false;    // some rows are missing: it was told to stop
  bool compared = false;       // with --pareto: some row is known by all of its goals
};

std::string SweepTables(const SweepResult& result, const Session& session);
std::string SweepMarkdown(const SweepResult& result, const Session& session);
std::string SweepJson(const SweepResult& result);
// "scenarios" and "rows" of it.
void WriteSweepRows(const SweepResult& result, JsonWriter& json);
// One row per scenario, times in ns.
std::string SweepCsv(const SweepResult& result);

}  // namespace daydream
