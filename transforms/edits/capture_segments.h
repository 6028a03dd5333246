// Where a step can be captured into graphs, and what is in the way.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "transforms/analysis/gpu_waits.h"
#include "transforms/edits/capture.h"

namespace daydream {

// Launches that one graph launch can stand for: nothing between them has to happen on the host.
struct CaptureSegment {
  std::vector<TaskId> launches;  // calls, in program order
  std::vector<TaskId> between;   // host work from the first launch to the last, both excluded
  std::vector<TaskId> around;    // host work before the first and after the last
  std::vector<TaskId> waits;     // between them; they come after the graph and wait for all of it
};

enum class CaptureBorder : uint8_t {
  kNone,
  kWait,
  kAllocation,
  kHostCopy,
  kCollective,
  kGraph,
  kLoader
};

struct CaptureSegments {
  std::vector<CaptureSegment> segments;     // in program order
  absl::flat_hash_set<TaskId> allocations;  // calls that give or take memory
  std::vector<bool> ops_of_borders;         // by scope: a border is part of it
  // Borders between launches, by whether they can leave the step.
  std::map<std::pair<CaptureBorder, bool>, SiteList> borders;
};

// With CaptureScope::kLayer, a layer and a direction are captured together.
using CaptureGroup = std::pair<LayerId, Phase>;
CaptureGroup GroupOfWork(const Graph& graph, TaskId t, int depth);

// Of the graph of `edit` as it is now: costs in `options` do not matter. O(tasks log tasks).
std::shared_ptr<const CaptureSegments> FindCaptureSegments(const CaptureOptions& options,
                                                           const Editor& edit);

}  // namespace daydream
