// Repeats a part of a graph: tasks of any lanes are copied in the order of their lanes, with the
// edges among them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "transforms/core/editor.h"

namespace daydream {

enum class CopyPlace : uint8_t {
  kBefore,  // in front of the first of them on each lane
  kAfter,   // behind the last of them on each lane
};

// `times` copies of `tasks`, one after the other.
struct CopyOrder {
  std::vector<TaskId> tasks;
  int times = 1;
  // CopyPlace::kBefore: in front of these instead, by lane.
  std::map<LaneId, TaskId> fronts = {};
};
// Tasks whose copies only hold a place in the order and take no time.
using HollowTask = std::function<bool(TaskId)>;

// Copies in front also wait for what the originals wait for from earlier steps. A task is in one
// part at most. O(copies + edges).
void CopyParts(Editor& edit, std::span<const CopyOrder> parts, CopyPlace place,
               const HollowTask& hollow = nullptr);

}  // namespace daydream
