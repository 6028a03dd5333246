// The step time of one scenario of a batch, by the instants of the rows that are left of its graph.
// Internal to simulator/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "graph/graph.h"
#include "graph/host_lead.h"
#include "graph/large_pages.h"
#include "graph/step_windows.h"
#include "simulator/contract.h"
#include "simulator/simulate.h"
#include "simulator/step_candidates.h"

namespace daydream {

// What is the same for all scenarios, on all threads.
struct BatchShape {
  // Keeps a reference to `g`. `rounds`: it is of a lone step, and cycles are asked for.
  explicit BatchShape(const Graph& g, bool rounds = false);
  // Contracts the graph, whose plan it is, to what step times hang on.
  void Keep(const Plan& plan);

  const Graph& graph;
  const bool is_rounds;
  // Of several steps that count, the one that is told by its cycle; and the steps without it.
  std::optional<size_t> cycle_of;
  std::vector<GraphStep> steps;
  CandidateFinder candidates;
  Contracted contracted;
  std::optional<HostLead> lead;
};

// Starts and ends of one scenario, a place each `stride` numbers.
struct InstantsOfRows {
  // Of one of `scenarios` side by side (simulator/contract.h).
  InstantsOfRows(const int64_t* instants, size_t s, size_t scenarios)
      : start(instants + s), end(start + scenarios), stride(2 * scenarios), scenario(s) {}
  const int64_t *start, *end;
  size_t stride;
  size_t scenario;
};

// When the tasks of each step begin and end, of scenarios side by side.
struct ReachOfStep {
  std::array<int64_t, kSideBySide> first, last;
};

// Use one on each thread.
class BatchStep {
 public:
  explicit BatchStep(const BatchShape& shape) : shape_(shape) {}  // keeps a reference

  // Before Of() of one of these `scenarios`, 1 or kSideBySide: rows are read once for all of them.
  void Read(const int64_t* instants, size_t scenarios);
  // `cycle`: how long the step is that is told by its cycle. `sums` writes what the instants were
  // found with, which are asked for where the step used up a lead of its host.
  Duration Of(InstantsOfRows at, Duration cycle, absl::FunctionRef<void(std::span<int64_t>)> sums);
  // StepPeriods() behind that.
  const std::vector<Duration>& periods() const { return periods_; }
  // StepWindows() behind that, of a graph of several steps.
  const std::vector<StepWindow>& windows() const { return windows_; }

 private:
  using WriteSums = absl::FunctionRef<void(std::span<int64_t>)>;
  size_t Place(TaskId t, InstantsOfRows at) const {
    return size_t{shape_.contracted.place_of[t.index()]} * at.stride;
  }
  template <size_t kScenarios>
  void FindReaches(const int64_t* instants, std::vector<ReachOfStep>& reaches) const;
  StepExtent ExtentOf(size_t step, InstantsOfRows at, const ReachOfStep& reach) const;
  void FindPeriods(InstantsOfRows at, std::span<const ReachOfStep> reaches);
  Duration CycleIn(InstantsOfRows at) const;
  void AddWhatIsUsedUp(InstantsOfRows at, WriteSums sums);
  Duration HostPeriodOf(WriteSums sums);

  const BatchShape& shape_;
  std::vector<ReachOfStep> reaches_, reaches_of_host_;
  std::vector<StepExtent> extents_;
  std::vector<StepWindow> windows_;
  std::vector<Duration> periods_;
  // Of the host alone; filled when first asked for.
  std::vector<uint32_t> gpu_sums_;
  std::vector<int64_t> host_sums_;
  LargeArray instants_of_host_;
};

}  // namespace daydream
