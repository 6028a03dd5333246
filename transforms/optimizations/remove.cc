// remove: what the user selects is not there.
#include "transforms/core/select.h"
#include "transforms/core/select_term.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kRemoveParams[] = {
    {.name = "select",
     .unit = Unit::kText,
     .help = "which tasks, such as kernel:dropout",
     .source = "chosen by the user",
     .required = true},
};

absl::Status RunRemove(const Params& params, Editor& edit) {
  DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(params.text("select")));
  if (std::string note = NoteOnBareWord(params.text("select")); !note.empty()) {
    edit.changes().notes.push_back(std::move(note));
  }
  std::vector<TaskId> gpu, host;
  for (TaskId t : selector.Select(edit.graph())) {
    (IsGpu(edit.graph().task(t).kind) ? gpu : host).push_back(t);
  }
  edit.BeginCause(fmt::format("{} is gone", selector.text()));
  edit.RemoveWithLaunches(gpu);
  edit.Remove(host);
  if (gpu.empty() && host.empty()) {
    edit.changes().notes.push_back(fmt::format("no task matches {}", selector.text()));
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kRemove = {
    .name = "remove",
    .summary = "The selected tasks are not there",
    .params = kRemoveParams,
    .stated_by_user = true,
    .apply = &RunRemove,
    .model =
        "Removes the selected tasks. GPU work goes together with the calls that launched "
        "nothing else; a removed blocking call no longer waits. Whatever waited for a "
        "removed task waits for what that task waited for.",
    .ignores =
        "Host time of the framework around removed launches stays: select it with op: to "
        "remove it too. Whether the result would still be right is not checked.",
    .sources = "Daydream (ATC'20), section 3.5: select and remove",
    .twice = "",
    .memory_model = "What removed forward ops kept for backward is gone.",
};

}  // namespace daydream
