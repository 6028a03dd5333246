#include "report/predict/unchecked.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/predict/residuals.h"
#include "report/summary.h"

namespace daydream {

std::optional<double> UncheckedShare(const Graph& before, std::span<const CauseJournal> journals) {
  Grouper classes(before, GroupBy::kClass);
  std::vector<bool> unchecked(before.size(), false);
  Duration never;
  bool modelled = false;
  for (const CauseJournal& journal : journals) {
    if (journal.stated_by_user) continue;
    absl::flat_hash_map<NameId, bool> checked;  // the name of a kernel tells its class
    for (const Editor::Edit& e : journal.edits) {
      if (e.task.index() >= before.size() || e.duration.ns == 0) continue;
      const Task& task = before.task(e.task);
      if (task.kind != TaskKind::kKernel) continue;
      modelled = true;
      const auto [known, first] = checked.try_emplace(task.name, false);
      if (first) known->second = WasChecked(journal.opt, classes.Of(e.task));
      if (known->second || unchecked[e.task.index()]) continue;
      unchecked[e.task.index()] = true;
      never += task.duration;
    }
  }
  if (!modelled) return std::nullopt;
  Duration all;
  for (const Task& t : before.tasks()) {
    if (!t.removed && IsGpu(t.kind)) all += t.duration;
  }
  return all.ns > 0 ? static_cast<double>(never.ns) / static_cast<double>(all.ns) : 0;
}

}  // namespace daydream
