// speedup: what the user selects runs faster, by a factor that the user gives.
#include <algorithm>
#include <iterator>
#include <vector>

#include "transforms/core/select.h"
#include "transforms/core/select_term.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kSpeedupParams[] = {
    {.name = "select",
     .unit = Unit::kText,
     .help = "which tasks, such as kernel:sgemm or "
             "phase:backward&op:conv",
     .source = "chosen by the user",
     .required = true},
    {.name = "by",
     .unit = Unit::kFactor,
     .fallback = 2,
     .min = 1e-3,
     .max = 1e6,
     .help = "how many times faster; below 1 is slower",
     .source = "chosen by the user"},
};

void Shorten(std::span<const TaskId> tasks, const Params& params, Editor& edit) {
  const double factor = 1 / params["by"];
  std::vector<double> at_ends =
      edit.AtEnds([](const EndView& at) { return 1 / at.params()["by"]; });
  if (std::ranges::count(at_ends, factor) == std::ssize(at_ends)) at_ends.clear();
  edit.Scale(tasks, factor, at_ends);
  // Between host tasks the gap is host work, between GPU tasks it is latency.
  std::vector<TaskId> host;
  std::ranges::copy_if(tasks, std::back_inserter(host),
                       [&](TaskId t) { return IsHost(edit.graph().task(t).kind); });
  edit.ScaleGaps(host, factor, at_ends);
}

absl::Status RunSpeedup(const Params& params, Editor& edit) {
  DD_ASSIGN_OR_RETURN(Selector selector, Selector::CompileFor(edit.graph(), params.text("select")));
  if (std::string note = NoteOnBareWord(params.text("select")); !note.empty()) {
    edit.changes().notes.push_back(std::move(note));
  }
  std::vector<TaskId> tasks = selector.Select(edit.graph());
  edit.BeginCause(
      fmt::format("{} runs {} faster", selector.text(), FormatValue(params["by"], Unit::kFactor)));
  Shorten(tasks, params, edit);
  if (params["by"] == 1) return absl::OkStatus();
  if (tasks.empty()) {
    edit.changes().notes.push_back(fmt::format("no task matches {}", selector.text()));
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kSpeedup = {
    .name = "speedup",
    .summary = "The selected tasks run faster",
    .params = kSpeedupParams,
    .stated_by_user = true,
    .ends = AtEnds::kGaps,  // of `by`, which rows of a sweep differ in (report/predict/told_rows.h)
    .apply = &RunSpeedup,
    .model =
        "Divides the duration of every selected task by the factor; for host tasks also the "
        "unrecorded host work that follows them. Nothing else changes: waits, queues and "
        "the order of everything are played again.",
    .ignores =
        "Side effects of whatever makes the tasks faster. No floor is applied: a kernel "
        "may be predicted to run faster than the GPU can.",
    .sources = "Daydream (ATC'20), section 3.5: select and scale",
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
