// Nodes of CUDA graphs, as CUPTI's resource callbacks tell about them on the program's threads.
// They wait here until Recording::AddGraphNodes() takes them.
#pragma once

#include <cstdint>
#include <vector>

namespace daydream::tracer {

// A node was made, or cloned when its graph was instantiated (then origin_node says from what).
// Ids are those of cuptiGetGraphId and cuptiGetGraphNodeId.
struct GraphNode {
  uint32_t graph = 0;
  uint32_t type = 0;  // CUgraphNodeType
  uint64_t node = 0;
  uint64_t origin_node = 0;  // 0: none
  int64_t created_ns = 0;    // CLOCK_MONOTONIC
  uint32_t thread = 0;       // gettid of the thread that made it
};

// From any thread; takes a lock. Nodes beyond 1 M that wait are dropped and counted.
void NoteGraphNode(const GraphNode& node);
std::vector<GraphNode> TakeGraphNodes();
uint64_t DroppedGraphNodes();

// As in tracer/marks.h. The child has no nodes that wait.
void GraphNodesBeforeFork();
void GraphNodesAfterForkInParent();
void GraphNodesAfterForkInChild();

}  // namespace daydream::tracer
