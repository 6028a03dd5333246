#include "report/export/task_csv.h"

#include <vector>

#include <fmt/format.h>

#include "report/lane_rows.h"
#include "report/summary.h"
#include "report/text/table.h"

namespace daydream {

std::string TaskCsv(std::span<const Side> sides) {
  std::string out =
      "side,task,lane,kind,name,step,counted,phase,layer,op,start_ns,end_ns,duration_ns,gap_ns,"
      "recorded_start_ns,bytes\n";
  for (const Side& side : sides) {
    const Graph& graph = *side.graph;
    std::vector<std::string> lanes;
    for (size_t l = 0; l < graph.lanes().size(); ++l) {
      lanes.push_back(CsvField(LaneTitle(graph, LaneId(l))));
    }
    const std::string name = CsvField(side.name);
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& t = graph.tasks()[i];
      if (t.removed) continue;
      TaskId id(i);
      bool counted = t.step < graph.steps().size() && graph.steps()[t.step].measured;
      const CopyDetail* copy = graph.Copy(id);
      fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                     name, i, lanes[t.lane.index()], Name(t.kind), CsvField(graph.TaskName(id)),
                     t.step, counted ? 1 : 0, Name(t.phase),
                     CsvField(t.layer.valid() ? GroupOf(graph, id, GroupBy::kLayer) : ""),
                     CsvField(t.scope.valid() ? GroupOf(graph, id, GroupBy::kOp) : ""),
                     side.timeline->start[i].ns, side.timeline->end[i].ns, t.duration.ns, t.gap.ns,
                     t.recorded_start.ns, copy != nullptr ? copy->bytes : 0);
    }
  }
  return out;
}

}  // namespace daydream
