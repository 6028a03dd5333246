#include "report/predict/whole_work.h"

#include "graph/retimed.h"
#include "report/predict/graph_copies.h"
#include "simulator/same_shape.h"

namespace daydream {

WholeWork WorkOf(const Graph& recorded, const Graph& outcome) {
  if (outcome.structure() == GraphCopies::kStructure) return {0, RetimedBy(recorded, outcome)};
  WholeWork work{NumberOfShape(outcome), {}};
  for (const Task& task : outcome.tasks()) {
    if (!task.removed) work.time += task.duration + task.gap;
  }
  return work;
}

}  // namespace daydream
