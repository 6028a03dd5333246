// The step times of many scenarios of one structure, eight in one pass: what intervals, sweeps and
// speed-up curves are made of. Only durations and gaps differ between the scenarios.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

// Make once, then fill columns and Run() as often as needed; all memory is reused. Use one on each
// thread.
class StepBatch {
 public:
  static constexpr size_t kWidth = 8;

  // FailedPrecondition on a cycle, or when a lane may reorder. Keeps a reference to `graph`, whose
  // structure must stay. The columns hold its durations and gaps. O(tasks + edges).
  static absl::StatusOr<StepBatch> Make(const Graph& graph);
  StepBatch(StepBatch&&) noexcept;
  StepBatch& operator=(StepBatch&&) noexcept;
  ~StepBatch();

  // What scenario `s` < kWidth takes, by TaskId; kept from run to run. A negative gap may only
  // stand where the graph has one. Those of removed tasks are not read.
  std::span<Duration> duration(size_t s);
  std::span<Duration> gap(size_t s);

  // StepTime() of the eight scenarios.
  std::array<Duration, kWidth> Run();

 private:
  struct Impl;
  explicit StepBatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace daydream
