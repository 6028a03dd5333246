// Both ends of each parameter that has a range and was not given: what a step takes there is part
// of its interval.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "report/predict/graph_copies.h"
#include "report/predict/intervals.h"
#include "simulator/step_batch.h"
#include "transforms/core/ends.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

struct OpenEnd {
  size_t application;  // in the scenario
  const ParamSpec* spec;
  double value;
  bool asked;  // false: nobody read the parameter, and its value does not matter
  std::optional<size_t> column = {};  // of BegunScenario::columns(); none: it needs a graph
  std::optional<Duration> step = {};  // none: it could not be played
};

// The step of `graph`, which `batch` plays, at each of these ends that was asked for and has a
// column. All scenarios of `batch` are as before.
void PlayColumns(const EndColumns& columns, const Graph& graph, StepBatch& batch,
                 std::span<OpenEnd> ends);

// The steps at `ends`, low and high in turn, each `scale` times as long; `step` where it could not
// be played.
std::vector<ParamEnds> StepsAtEnds(std::span<const OpenEnd> ends, Duration step, double scale);

// The graphs between the applications of a scenario: an end of a later one's parameter goes on from
// what the earlier ones have made. Keeps references to `scenario` and `copies`.
class BegunScenario {
 public:
  // `columns`: ends that change times only get columns of times instead of graphs.
  BegunScenario(std::span<const Application> scenario, GraphCopies& copies, bool columns);

  // The scenario to apply in full, with values as they are: notes what it asks for.
  std::span<const Application> noted() const { return noted_; }
  // For ApplyAll() of noted(); null: no end has a column.
  EndColumns* columns() { return columns_.has_value() ? &*columns_ : nullptr; }
  // After each of noted() in turn: the graph as it is now, and whether this one changed it. A copy
  // of the graph where the next one has open parameters.
  void Keep(const Application& application, const Graph& graph, bool changed);
  // Two for each open parameter, the low end first. After noted() was applied.
  std::vector<OpenEnd> Ends() const;

  // The graph with the parameter at that end; where the application can do nothing there, without
  // it. Null: then nothing changes. Fails when there is no such value. Several threads may ask.
  absl::StatusOr<GraphCopies::Copy> With(const OpenEnd& end) const;

 private:
  struct Begun {
    size_t applied = 0;  // applications that changed something
    GraphCopies::Copy graph;
  };
  bool NeedsGraphs(size_t application) const;
  GraphCopies::Copy From(size_t application, std::span<const Application> rest) const;

  std::span<const Application> scenario_;
  std::vector<Application> noted_;
  std::vector<AskedParams> asked_;  // by application
  GraphCopies& copies_;
  std::map<std::pair<size_t, std::string_view>, size_t> column_of_;  // the low end; then the high
  std::optional<EndColumns> columns_;
  std::map<size_t, Begun> before_;  // by application; none: the recorded graph
  size_t applied_ = 0;
};

}  // namespace daydream
