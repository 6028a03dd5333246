// Work that takes longer or shorter by a parameter, also at the ends of its range.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "transforms/core/editor.h"

namespace daydream {

// Scales the durations of `tasks`, each there once, by `params[param]`; by 1 is no edit.
inline void ScaleBy(std::string_view param, std::span<const TaskId> tasks, const Params& params,
                    Editor& edit) {
  if (tasks.empty()) return;
  const double factor = params[param];
  for (TaskId t : tasks) {
    const std::vector<Duration> at_ends =
        edit.AtEnds([&](const EndView& at) { return at.DurationOf(t).Scaled(at.params()[param]); });
    if (factor != 1) edit.Scale({&t, 1}, factor);
    edit.SetAtEnds(t, at_ends);
  }
}

}  // namespace daydream
