// Replays of one graph and of copies with other times: what has to be found once for its structure,
// found when the first asks for it and lent to all who do.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "graph/retimed.h"
#include "simulator/simulate.h"
#include "simulator/step_batch.h"

namespace daydream {

class Replays {
  // What the scenarios of a batch are.
  struct Followed {
    const Graph* graph = nullptr;
    std::shared_ptr<const RetimedTasks> retimed;
  };
  struct GiveBack {
    Replays* home = nullptr;
    Followed followed;
    void operator()(StepBatch* batch) const { home->Keep(batch, followed); }
  };

 public:
  using Lent = std::unique_ptr<StepBatch, GiveBack>;  // may not outlive the Replays

  explicit Replays(const Graph& graph) : graph_(graph) {}  // keeps a reference

  // Null: lanes may reorder, or there is a cycle. May be called from several threads.
  const Plan* plan();
  // All scenarios are `graph`: the graph, or a copy with its Graph::structure(). Null as plan(),
  // and where a gap of it became less than 0. O(retimed() + rows); where a batch that nobody uses
  // was the last of this graph, which shares its facts, O(1).
  Lent Batch(const Graph& graph);
  // Of a graph that is `played`, which plan() is for, or like it: by the plan where that serves.
  absl::StatusOr<Timeline> Replay(const Graph& graph, const Graph& played, SimulateOptions options);

 private:
  // Of a batch that nobody uses. What it follows may be gone, and is then like nothing else.
  struct Spare {
    std::unique_ptr<StepBatch> batch;
    const Graph* graph;
    std::weak_ptr<const RetimedTasks> retimed;
  };
  // One that follows this already, or any; null: there is none.
  std::unique_ptr<StepBatch> TakeSpare(const Followed* followed);
  void Keep(StepBatch* batch, const Followed& followed);
  void MakeRoom();  // to keep one more, so that giving it back needs no memory

  const Graph& graph_;
  // No std::call_once: where memory ends inside of it, glibc loads a library to unwind, or aborts.
  std::mutex planning_, mutex_;
  bool planned_ = false;
  std::optional<Plan> plan_;
  // What others are made like, also while it is lent: it has in common with them what stays.
  const StepBatch* first_ = nullptr;
  std::vector<Spare> spare_;
  size_t made_ = 0;
};

}  // namespace daydream
