#include "report/predict/unchecked.h"

#include <set>

#include "report/predict/residuals.h"
#include "report/summary.h"

namespace daydream {

std::optional<double> UncheckedShare(const Graph& before, std::span<const CauseJournal> journals) {
  Grouper classes(before, GroupBy::kClass);
  std::set<TaskId> unchecked;
  bool modelled = false;
  for (const CauseJournal& journal : journals) {
    if (journal.stated_by_user) continue;
    for (const Editor::Edit& e : journal.edits) {
      if (e.task.index() >= before.size() || e.duration.ns == 0) continue;
      if (before.task(e.task).kind != TaskKind::kKernel) continue;
      modelled = true;
      if (!WasChecked(journal.opt, classes.Of(e.task))) unchecked.insert(e.task);
    }
  }
  if (!modelled) return std::nullopt;
  Duration all, never;
  for (const Task& t : before.tasks()) {
    if (!t.removed && IsGpu(t.kind)) all += t.duration;
  }
  for (TaskId t : unchecked) never += before.task(t).duration;
  return all.ns > 0 ? static_cast<double>(never.ns) / static_cast<double>(all.ns) : 0;
}

}  // namespace daydream
