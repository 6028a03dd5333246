// One action of a step of an option file, on the tasks that the step selects.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "transforms/core/editor.h"
#include "transforms/core/source_text.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/option_steps.h"
#include "transforms/scenario/task_values.h"

namespace daydream {

struct ActionContext {
  const OptionFile& file;
  TaskValues& values;  // of the graph before the step
  Editor& edit;
  Place place;  // of the action, for errors
};

// Tasks that an action leaves as they are.
struct Skipped {
  uint64_t n = 0;
  std::string sentence;  // why, as the warning ends: "no bytes"

  // `tasks` more: there is no `lacking`.
  void Add(std::string_view lacking, uint64_t tasks = 1);
};

struct ActionResult {
  Skipped skipped;
  bool other_work = false;  // work of the GPU came or went
};

// FailedPrecondition, with the line of the file, when a value is out of its range (E0424), a task
// lacks what the file says it needs (E0423) or work would wait for itself (E0425).
absl::StatusOr<ActionResult> RunAction(const OptionAction& action, std::span<const TaskId> tasks,
                                       const ActionContext& in);

// An error of the optimization in `file` that points at `place`.
absl::Status OptionError(const OptionFile& file, absl::StatusCode status, std::string_view code,
                         Place place, std::string what, std::string why = {}, std::string fix = {});

}  // namespace daydream
