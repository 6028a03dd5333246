#include "report/loader_workers.h"

#include <algorithm>
#include <vector>

#include "base/median.h"
#include "graph/stalled_time.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

// Batches that workers may have made ahead: two for each (PyTorch's default), of four workers.
constexpr size_t kAhead = 8;
// Of more workers, they come as many at a time; more than this many are not usual.
constexpr size_t kMostTogether = 32;

// A call of next() and the piece of it that waits.
struct LoaderWait {
  TaskId task;
  bool gap = false;  // the stretch after the task, not the task itself
  Duration time;     // of the piece
  Instant until;
};

LoaderWait WaitIn(const Graph& graph, const LoaderScopes& loader, const Fetch& fetch) {
  LoaderWait wait;
  for (TaskId t : fetch.tasks) {
    const Task& task = graph.task(t);
    const Instant end = task.recorded_start + task.duration;
    if (task.duration > wait.time) wait = {t, false, task.duration, end};
    if (loader.OwnsGapOf(task) && task.gap > wait.time) wait = {t, true, task.gap, end + task.gap};
  }
  return wait;
}

// A call that waited and the one before it that did, between which the workers were busy. Behind
// many that found theirs ready, they had stood still, with all made that they may make ahead: this
// batch was begun when that so many places before was received, or before the window began. The
// first step that counts follows one that does not: the batch of that is the one before, but where
// it came so much earlier that the step held the workers up, and not they the step.
struct Handover {
  size_t before, at;
};

struct Handovers {
  LoaderRate rate;
  std::vector<Handover> all;
};

std::optional<Handovers> FindHandovers(const Graph& graph, const std::vector<Fetch>& fetches) {
  if (fetches.empty() || !HasWorkers(graph, fetches[0])) return std::nullopt;
  // A batch that was late once is no rate.
  const std::optional<LoaderRate> rate = FindLoaderRate(graph, fetches);
  if (!rate.has_value()) return std::nullopt;
  std::vector<size_t> waited, apart;
  for (size_t k = 0; k < fetches.size(); ++k) {
    if (!Waited(graph, fetches[k])) continue;
    if (!waited.empty()) apart.push_back(k - waited.back());
    waited.push_back(k);
  }
  const size_t usual = Median(apart);
  if (usual > kMostTogether) return std::nullopt;
  size_t first = 0;
  while (first < fetches.size() && !Counts(graph, fetches[first])) ++first;
  const auto time = [&](const Handover& h) {
    return Returned(graph, fetches[h.at]) - Returned(graph, fetches[h.before]);
  };
  std::vector<Handover> out;
  for (size_t i = 0; i < waited.size(); ++i) {
    const size_t at = waited[i];
    if (at < first) continue;
    size_t before = at - std::min(at, kAhead);
    if (i > 0) {
      const bool many = apart[i - 1] > std::max(kAhead, 2 * usual);
      // What made so many ready is known.
      const bool in_stall = HeldUpBetween(graph, fetches[waited[i - 1]], fetches[at]);
      if (!many || in_stall) before = waited[i - 1];
    }
    if (before < at) out.push_back({before, at});
  }
  if (out.size() > 1 && out[0].before < first) {
    std::vector<Duration> others;
    for (size_t i = 1; i < out.size(); ++i) others.push_back(time(out[i]));
    if (time(out[0]) > Median(others) * 2) out[0].before = first;
    if (out[0].before == out[0].at) out.erase(out.begin());
  }
  if (out.empty()) return std::nullopt;
  return Handovers{*rate, std::move(out)};
}

LoaderWorkers About(const Handovers& handovers) {
  std::vector<size_t> batches;
  for (const Handover& h : handovers.all) batches.push_back(h.at - h.before);
  return {.batch = handovers.rate.batch,
          .every = Median(batches),
          .is_sure = handovers.rate.is_sure,
          .lay_ready = handovers.rate.lay_ready};
}

// How long the workers made batches from one wait to the next. In a stall that was taken out they
// went on for as long as they may make ahead, and calls behind it found more of them ready than
// ever; where none did, they stood still, too.
class MakingOf {
 public:
  MakingOf(const Graph& graph, const std::vector<Fetch>& fetches, const Handovers& handovers)
      : graph_(graph), batch_(handovers.rate.batch) {
    for (const Handover& h : handovers.all) {
      const bool held_up = HeldUpBetween(graph, fetches[h.before], fetches[h.at]);
      if (!held_up) most_ = std::max(most_, h.at - h.before);
    }
  }

  Duration operator()(const Handover& h, Instant from, Instant until) const {
    const Duration time = until - from;
    const Duration steady =
        graph_.stalled_time().Steady(until) - graph_.stalled_time().Steady(from);
    if (h.at - h.before <= most_) return steady;
    return std::clamp(batch_ * static_cast<int64_t>(h.at - h.before), steady, time);
  }

 private:
  const Graph& graph_;
  Duration batch_;
  size_t most_ = 0;  // batches at a time, elsewhere
};

}  // namespace

std::optional<LoaderWorkers> FindLoaderWorkers(const Graph& graph) {
  const std::vector<Fetch> fetches = FindFetches(graph, LoaderScopes(graph));
  const std::optional<Handovers> handovers = FindHandovers(graph, fetches);
  if (!handovers.has_value()) return std::nullopt;
  return About(*handovers);
}

bool WorkersKeepUp(const Graph& graph) {
  const auto made = [](const Task& t) { return t.kind == TaskKind::kData; };
  if (std::ranges::any_of(graph.tasks(), made)) return false;  // by PlayLoaderWorkers()
  const std::vector<Fetch> fetches = FindFetches(graph, LoaderScopes(graph));
  const auto by_workers = [&](const Fetch& f) { return HasWorkers(graph, f); };
  return std::ranges::any_of(fetches, by_workers) && !FindHandovers(graph, fetches);
}

std::optional<LoaderWorkers> PlayLoaderWorkers(Graph& graph) {
  const LoaderScopes loader(graph);
  const std::vector<Fetch> fetches = FindFetches(graph, loader);
  const std::optional<Handovers> handovers = FindHandovers(graph, fetches);
  if (!handovers.has_value()) return std::nullopt;
  const MakingOf making(graph, fetches, *handovers);
  const Duration receive = Duration::FromDouble(kNextCostParam.fallback);
  const NameId made_name = graph.AddName("(loader workers make a batch)");
  const NameId wait_name = graph.AddName("(waits for loader workers)");
  const LaneId lane = graph.AddLane(
      {.lane = {
           .kind = LaneKind::kChannel, .name = graph.AddName("loader workers"), .number = -1}});
  // Where the last batch that was waited for came.
  LoaderWait last;
  size_t last_at = fetches.size();
  for (const Handover& h : handovers->all) {
    if (h.before != last_at) last = WaitIn(graph, loader, fetches[h.before]);
    const Fetch& f = fetches[h.at];
    const LoaderWait wait = WaitIn(graph, loader, f);
    if (!wait.task.valid() || !last.task.valid()) continue;
    const Duration waits =
        std::max(std::min(wait.time, RecordedLength(graph, f) - receive), Duration{});
    const Task before = graph.task(wait.task);
    const TaskId made = graph.Append({.recorded_start = last.until,
                                      .duration = making(h, last.until, wait.until),
                                      .name = made_name,
                                      .lane = lane,
                                      .scope = f.scope,
                                      .step = before.step,
                                      .kind = TaskKind::kData,
                                      .phase = Phase::kData});
    if (h.before != last_at) {
      graph.AddEdge({.from = last.task,
                     .to = made,
                     .lag = last.gap ? graph.task(last.task).gap : Duration{},
                     .rule = Rule::kHandOff});
    }
    Task& task = graph.mutable_task(wait.task);
    (wait.gap ? task.gap : task.duration) -= waits;
    const Duration after = wait.gap ? Duration{} : task.gap;
    if (!wait.gap) task.gap = {};
    const TaskId waiting = graph.InsertAfter(wait.task, {.recorded_start = wait.until - waits,
                                                         .gap = after,
                                                         .name = wait_name,
                                                         .lane = before.lane,
                                                         .scope = f.scope,
                                                         .layer = before.layer,
                                                         .step = before.step,
                                                         .kind = TaskKind::kWait,
                                                         .phase = Phase::kData});
    graph.AddEdge({.from = made,
                   .to = waiting,
                   .lag = {},
                   .rule = Rule::kHandOff,
                   .to_anchor = Anchor::kEnd});
    last = {waiting, false, {}, wait.until};
    last_at = h.at;
  }
  return About(*handovers);
}

}  // namespace daydream
