// Which kernels fuse merges.
#pragma once

#include <vector>

#include "transforms/editor.h"

namespace daydream {

class FuseGroups {
 public:
  explicit FuseGroups(Editor& edit);

  // The kernels of each optimizer step that a fused optimizer does away with, by stream, in lane
  // order. Counts kernels of optimizers that are fused already.
  std::vector<std::vector<TaskId>> Optimizers(size_t* fused_already) const;

  // Longest runs of two or more elementwise kernels of equal size on one stream, step and phase
  // with no other work, and no edge but launches, between them.
  std::vector<std::vector<TaskId>> ElementwiseRuns() const;

  // Host work that only served to launch all but the first of `group`: between consecutive
  // launches on one thread, if the thread launches nothing else and waits for nothing there.
  // `everything`: also work outside of framework ops.
  std::vector<TaskId> HostBetween(const std::vector<TaskId>& group, bool everything) const;

  bool has_backward() const { return has_backward_; }

 private:
  bool InOptimizer(const Task& task) const;
  bool MayJoin(TaskId previous, TaskId next) const;

  Editor& edit_;
  const Graph& graph_;
  std::vector<bool> elementwise_;    // by task
  std::vector<bool> held_, holds_;   // by task: other edges than launches come in, go out
  std::vector<bool> waits_;          // by task: waits for the GPU
  std::vector<bool> optimizer_scope_;  // by scope
  bool has_backward_ = false;
};

}  // namespace daydream
