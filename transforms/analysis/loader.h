// Where the host waits for its data loader.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "transforms/core/params.h"

namespace daydream {

inline constexpr ParamSpec kNextCostParam = {
    .name = "next_cost",
    .unit = Unit::kDuration,
    .fallback = 0.1e6,
    .low = 0.07e6,
    .high = 1.5e6,
    .max = 1e10,
    .help = "host time to receive a batch that is ready, where the run has workers",
    .source =
        "measured: calls of next() that did not wait, in runs on an A100, a 2080 Ti and a "
        "V100 (docs/optimizations/prefetch.md)"};

// Tells the tasks in which a training loop gets its next batch: those inside of ranges that are
// named after the loader ("enumerate(DataLoader)#...", "DataLoader.__next__").
class LoaderScopes {
 public:
  explicit LoaderScopes(const Graph& graph);

  // The outermost loader range around `scope`, or None.
  ScopeId Around(ScopeId scope) const;
  // True when the gap after `t` lies inside of the loader range too.
  bool OwnsGapOf(const Task& t) const;

 private:
  struct Found {
    std::vector<ScopeId> around;  // by scope
    std::vector<bool> owns_gap;   // by scope: its innermost range that is no op is the loader's
  };
  static Found Find(const Graph& graph);

  std::shared_ptr<const Found> found_;
};

// One call of the loader's next().
struct Fetch {
  ScopeId scope;
  std::vector<TaskId> tasks;  // host work in it, in lane order
  Duration work;              // of them, with the gaps that are the loader's
  Duration ops;               // part of it inside of framework ops: making tensors, not reading
};

// All calls of next() by the time at which they begin. O(tasks).
std::vector<Fetch> FindFetches(const Graph& graph, const LoaderScopes& loader);
// When it was called, and when it returned: as recorded, without stalls that were taken out.
Instant Called(const Graph& graph, const Fetch& fetch);
Instant Returned(const Graph& graph, const Fetch& fetch);
// Whether a stall took a tenth of the time between two calls, or more: what workers made meanwhile
// nobody knows.
bool HeldUpBetween(const Graph& graph, const Fetch& first, const Fetch& last);
// How long the call took.
Duration RecordedLength(const Graph& graph, const Fetch& fetch);
// Part of it inside of framework ops.
Duration RecordedOps(const Graph& graph, const Fetch& fetch);
// True when it waited for its batch.
bool Waited(const Graph& graph, const Fetch& fetch);
// True when it is in a step that counts.
bool Counts(const Graph& graph, const Fetch& fetch);
// Mean time between two calls of next() in steps that count, as recorded. REQUIRES: one call at
// least.
Duration FetchPeriod(const Graph& graph, const std::vector<Fetch>& fetches);
// What a step took beside next(), as recorded. REQUIRES: one call at least.
Duration RestOfStep(const Graph& graph, const std::vector<Fetch>& fetches);
// What a step waits on average for `workers` that make batches in the times of the calls of counted
// steps (Fetch::work) and `ahead` batches each before they are asked for, while the rest of steps
// takes what it took: the recorded ones over and over, so that few batches that take long count
// with the queue that they empty. Not what they cost to receive. REQUIRES: one call at least.
// O(calls + workers * ahead).
Duration WaitForWorkers(const Graph& graph, const std::vector<Fetch>& fetches, size_t workers,
                        size_t ahead);
// How fast the loader hands over batches where steps that count wait for it.
struct LoaderRate {
  Duration batch;          // mean time from one batch to the next
  size_t first = 0;        // the first call in a step that counts
  size_t lay_ready = 0;    // batches from it on that were made while no step that counts ran
  bool is_sure = false;    // three calls or more waited so: two batches may have come late
  Duration shortest_rest;  // the least that a step behind them took beside next()
};
// The mean between the first and the last call that waited as calls usually do, at least half as
// long as the mean: what lay ready when the window began says nothing of how fast more are made.
// Of it from one such call to the next without a stall in between (HeldUpBetween()). Where one
// waited alone, that before the first that counts is the other, if it did, too. None when no two
// did, or when calls take less than a fiftieth of it: they receive what is ready.
std::optional<LoaderRate> FindLoaderRate(const Graph& graph, const std::vector<Fetch>& fetches);
// Batches that loader processes may have made ahead: two for each (PyTorch's default), of four.
inline constexpr size_t kMadeAhead = 8;
// Waits for loader processes that are too few to tell how often steps wait: what a GPU or a host
// that is done sooner brings nobody knows.
// Above this share of the time no prediction is of more than low confidence (chosen, as for other
// doubts about a tenth).
inline constexpr double kMostFewWaits = 0.1;
struct FewWaits {
  size_t count = 0;  // 2: there is a FindLoaderRate(), which is not sure; one may not count
  Duration time;     // of those in steps that count, together
  double share = 0;  // the same of the time of these steps
  // With a count of 0: how long the call before the first that counts waited.
  Duration before;
};
// None where one call counts, where next() makes its batches itself, where waits tell a rate that
// is sure or take less than a twentieth of the time, and where kMadeAhead batches lay ready on both
// sides of the only one (of none: in the steps that count), which came late.
std::optional<FewWaits> FindFewWaits(const Graph& graph, const std::vector<Fetch>& fetches);
// True when loader processes make the batches, as far as names tell: next() only waits for them.
bool HasWorkers(const Graph& graph, const Fetch& fetch);
// True when names tell that next() makes the batch itself.
bool HasNoWorkers(const Graph& graph, const Fetch& fetch);
// True when there is no FindLoaderRate(), and most calls took no longer than receiving a batch that
// is ready takes, or three or more count.
bool FindsBatchesReady(const Graph& graph, const std::vector<Fetch>& fetches);

}  // namespace daydream
