// The class Edit of Python: the verbs of transforms/core/editor.h with checks of what they are
// handed, since a mistake in a notebook must not end the notebook.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transforms/analysis/host_calls.h"
#include "transforms/core/editor.h"
#include "transforms/core/select.h"
#include "transforms/edits/fuse_groups.h"

namespace daydream {

// Tasks are numbers, rows of the graph. All methods raise daydream.Error: E0438 for tasks that
// cannot be meant, E0424 for values without meaning, E0103 for selectors that cannot be read, E0426
// when too much is added.
class Edit {
 public:
  using Tasks = std::vector<int64_t>;

  explicit Edit(Editor& editor) : editor_(&editor) {}
  void Close() { editor_ = nullptr; }  // the prediction goes on without it

  Tasks Select(const std::string& selector, const std::string& relation);
  std::vector<Tasks> Runs(const Tasks& tasks);
  std::vector<int64_t> TimesNs(const Tasks& tasks);
  std::vector<std::string> Names(const Tasks& tasks);
  nanobind::dict Task(int64_t task);

  void Cause(const std::string& what);
  void Note(const std::string& text);
  void Scale(const Tasks& tasks, double factor);
  void SetTime(const Tasks& tasks, double ns);
  void Remove(const Tasks& tasks);
  int64_t Insert(int64_t task, const std::string& name, double ns, bool after);
  int64_t Fuse(const Tasks& tasks, const std::string& name, double ns);
  double FusedTimeNs(const Tasks& tasks, double passes, double kept, double floor_ns);
  void Merge(const Tasks& tasks, const std::string& name, double ns, const std::string& cause);

 private:
  Editor& editor();
  const Graph& graph() { return editor().graph(); }
  TaskId Valid(int64_t task);
  std::vector<TaskId> Valid(const Tasks& tasks);
  std::vector<TaskId> OneLane(const Tasks& tasks);
  FuseGroups& groups();

  Editor* editor_;
  std::unique_ptr<FuseGroups> groups_;  // these two are made when first asked for
  std::optional<HostCosts> costs_;
};

}  // namespace daydream
