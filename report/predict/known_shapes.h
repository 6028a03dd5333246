// What scenarios of one recording come out as, where many are asked for: those that differ in what
// tasks take, and in nothing that a replay sees, have one plan.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "report/predict/causes.h"
#include "report/predict/graph_copies.h"
#include "report/predict/replays.h"

namespace daydream {

class KnownShapes {
 public:
  // One of them.
  struct Shape {
    explicit Shape(GraphCopies::Copy copy) : graph(std::move(copy)), replays(*graph) {}
    const GraphCopies::Copy graph;
    Replays replays;   // of it
    CauseGames games;  // of all graphs like it
  };
  struct Played {
    Duration step;
    std::vector<Duration> periods;  // StepPeriods()
    std::shared_ptr<Shape> shape;
  };

  // Keeps a reference to `copies`, of the recorded graph.
  explicit KnownShapes(GraphCopies& copies) : copies_(copies) {}

  // Played by the plan of a graph like this one, which is then kept: none the first time that such
  // a graph is seen, where lanes may reorder, and of graphs too large to be kept. Those that were
  // played last are, as many as have half a million tasks in all. May be called from several
  // threads. O(tasks + edges).
  std::optional<Played> Play(const Graph& graph);

  CauseGames& of_recorded() { return of_recorded_; }  // graphs of which only times were set

 private:
  using Sizes = std::array<size_t, 3>;  // tasks, edges, lanes
  struct Seen {
    size_t misses = 0;  // since one of them was like another
    std::vector<std::shared_ptr<Shape>> kept = {};
  };

  std::optional<Played> PlayAs(const std::shared_ptr<Shape>& shape, const Graph& graph);
  void Keep(const Sizes& sizes, std::shared_ptr<Shape> shape);
  std::vector<std::shared_ptr<Shape>> KeptOf(const Sizes& sizes);

  GraphCopies& copies_;
  CauseGames of_recorded_;
  std::mutex mutex_;
  absl::flat_hash_map<Sizes, Seen> seen_;
  std::list<std::pair<Sizes, std::shared_ptr<Shape>>> ages_;  // the last played first
  size_t kept_tasks_ = 0;
};

}  // namespace daydream
