#include "report/loader_workers.h"

#include <algorithm>
#include <vector>

#include "base/median.h"
#include "graph/host_lead.h"
#include "graph/stalled_time.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

// Of more workers, they come as many at a time; more than this many are not usual.
constexpr size_t kMostTogether = 32;

// A call of next() and the piece of it that waits.
struct LoaderWait {
  TaskId task;
  bool gap = false;  // the stretch after the task, not the task itself
  Duration time;     // of the piece
  Instant until;
};

// The GPU work that ends last in a step, and when it did. None where there is none.
LoaderWait LastWork(const Graph& graph, size_t step) {
  LoaderWait last;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.task(TaskId(i));
    if (t.removed || t.step != step || !IsGpu(t.kind)) continue;
    const Instant end = t.recorded_start + t.duration;
    if (!last.task.valid() || end > last.until) last = {TaskId(i), false, {}, end};
  }
  return last;
}

// Where the step before those that count has as much left as the last of them has behind its wait,
// which ends at `last_wait`; the task is its last GPU work. Steps are measured from the end of that
// work. Where it needs longer behind its batch, as of a GPU that is behind, and an edit makes both
// shorter, they begin sooner by more than they end: batches are made by so much sooner, too.
LoaderWait TailOfFirst(const Graph& graph, const std::vector<Fetch>& fetches, Instant last_wait) {
  std::optional<size_t> first, last;
  for (const Fetch& f : fetches) {
    if (!Counts(graph, f)) continue;
    last = graph.task(f.tasks.front()).step;
    if (!first) first = last;
  }
  if (!first || *first == 0) return {};
  LoaderWait tail = LastWork(graph, *first - 1);
  const LoaderWait end = LastWork(graph, *last);
  if (!tail.task.valid() || !end.task.valid()) return {};
  tail.until = tail.until - (end.until - last_wait);
  return tail;
}

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
  size_t first = 0;  // call in a step that counts
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
    size_t before = at - std::min(at, kMadeAhead);
    if (i > 0) {
      const bool many = apart[i - 1] > std::max(kMadeAhead, 2 * usual);
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
  return Handovers{*rate, first, std::move(out)};
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

// Part of the piece, `waits` of it, becomes a wait for the task `made`.
TaskId Splice(const LoaderWait& wait, Duration waits, NameId name, TaskId made, Graph& graph) {
  Task& task = graph.mutable_task(wait.task);
  (wait.gap ? task.gap : task.duration) -= waits;
  const Duration after = wait.gap ? Duration{} : task.gap;
  if (!wait.gap) task.gap = {};
  const Task before = task;
  const TaskId waiting = graph.InsertAfter(wait.task, {.recorded_start = wait.until - waits,
                                                       .gap = after,
                                                       .name = name,
                                                       .lane = before.lane,
                                                       .scope = graph.task(made).scope,
                                                       .layer = before.layer,
                                                       .step = before.step,
                                                       .kind = TaskKind::kWait,
                                                       .phase = Phase::kData});
  graph.AddEdge(
      {.from = made, .to = waiting, .lag = {}, .rule = Rule::kHandOff, .to_anchor = Anchor::kEnd});
  return waiting;
}

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
  const Handover &first = handovers->all.front(), &end = handovers->all.back();
  const LoaderWait tail = TailOfFirst(graph, fetches, WaitIn(graph, loader, fetches[end.at]).until);
  const bool has_tail = first.before < handovers->first && tail.task.valid();
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
    const Duration apart = FetchPeriod(graph, fetches) / kPartsThatDiffer;
    const bool behind_tail =
        has_tail && h.at == first.at && tail.until > last.until + apart && tail.until < wait.until;
    const Instant begin = behind_tail ? tail.until : last.until;
    const TaskId made = graph.Append({.recorded_start = begin,
                                      .duration = making(h, begin, wait.until),
                                      .name = made_name,
                                      .lane = lane,
                                      .scope = f.scope,
                                      .step = graph.task(wait.task).step,
                                      .kind = TaskKind::kData,
                                      .phase = Phase::kData});
    if (behind_tail) {
      const Task& work = graph.task(tail.task);
      graph.AddEdge({.from = tail.task,
                     .to = made,
                     .lag = tail.until - (work.recorded_start + work.duration),
                     .rule = Rule::kHandOff});
    } else if (h.before != last_at) {
      graph.AddEdge({.from = last.task,
                     .to = made,
                     .lag = last.gap ? graph.task(last.task).gap : Duration{},
                     .rule = Rule::kHandOff});
    }
    const TaskId waiting = Splice(wait, waits, wait_name, made, graph);
    last = {waiting, false, {}, wait.until};
    last_at = h.at;
  }
  return About(*handovers);
}

}  // namespace daydream
