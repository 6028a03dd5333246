// The kernels of a stream, and which of them need one another: what can run beside what.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "transforms/analysis/op_access.h"
#include "transforms/analysis/stream_assignment.h"
#include "transforms/core/editor.h"

namespace daydream {

// A kernel together with the delays recorded in front of it and with removed work behind it.
struct KernelUnit {
  std::vector<TaskId> tasks;
  TaskId kernel;
  std::optional<OpAccess> access;  // nothing: comes after all before it and before all behind it
};

class KernelUnits {
 public:
  // Keeps a reference to `edit`. O(tasks + edges).
  explicit KernelUnits(const Editor& edit);

  // In the order of the lane. Units next to one another that have an `access` may trade places
  // unless Dependencies() says otherwise: what something outside of the stream waits for, or waits
  // for something there, has none, nor has the first of a step. O(tasks of the lane).
  std::vector<KernelUnit> Of(LaneId lane);

  // By unit: whether a kernel behind it waits for its launch before the host next waits for the
  // GPU. What ends earlier in front of such a kernel is lost there.
  std::vector<bool> LostBehind(const std::vector<KernelUnit>& units) const;

  // The edges are what OpAccesses::Needs() says without what follows from later edges. REQUIRES:
  // all have an `access`. O(units^3) at most.
  WorkDag Dependencies(std::span<const KernelUnit> work);

  // GPU work of all lanes that were asked for, with an `access` and without.
  size_t known() const { return known_; }
  size_t unknown() const { return unknown_; }

 private:
  const Graph& graph() const { return edit_.graph(); }

  const Editor& edit_;
  OpAccesses accesses_;
  std::vector<bool> meets_;    // by task: work outside of its stream waits for it, or it for that
  std::vector<bool> awaited_;  // by task: the host waits for it
  size_t known_ = 0, unknown_ = 0;
};

}  // namespace daydream
