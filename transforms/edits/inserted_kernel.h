// A kernel that an optimization adds, with the host work that launches it.
#pragma once

#include <string_view>

#include "transforms/analysis/host_calls.h"
#include "transforms/core/editor.h"

namespace daydream {

// A call of the kind of `launch`, in its place: with its lane, scope, layer, step and phase.
inline Task CallBeside(const Task& launch, NameId name, Duration duration) {
  return {.recorded_start = launch.recorded_start,
          .duration = duration,
          .name = name,
          .lane = launch.lane,
          .scope = launch.scope,
          .layer = launch.layer,
          .step = launch.step,
          .kind = TaskKind::kCall,
          .phase = launch.phase};
}

struct InsertedKernel {
  TaskId at;           // the recorded kernel beside which it runs
  bool after = false;  // else before it
  NameId name;
  Duration duration, gap;
  NameId op, call;  // host work around the launch, and the launch; None: an op that is there
};

// Puts it beside `at`, with scope, layer, phase and step of `at`, and its op and launch beside the
// launch of `at`. A graph launch replays it with everything else. O(1).
TaskId InsertKernel(Editor& edit, const InsertedKernel& kernel, const HostCosts& costs);

}  // namespace daydream
