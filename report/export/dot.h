// A graph for Graphviz: one cluster per lane, tasks in order, edges labelled by rule and lag.
#pragma once

#include <string>

#include "graph/graph.h"

namespace daydream {

struct DotOptions {
  size_t max_tasks = 500;  // the first tasks of `step`; Graphviz gets slow beyond
  uint16_t step = 0;
};

// Says in a comment, and in the label of the picture, how many tasks were left out.
std::string Dot(const Graph& graph, const DotOptions& options = {});

}  // namespace daydream
