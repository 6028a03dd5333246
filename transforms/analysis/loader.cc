#include "transforms/analysis/loader.h"

#include "base/median.h"
#include "base/text.h"
#include "graph/facts.h"
#include "graph/scopes.h"
#include "graph/stalled_time.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>

namespace daydream {
namespace {

// Calls of next() that found their batch ready took 0.07 to 1.5 ms in runs on an A100, a 2080 Ti
// and a V100 (docs/optimizations/prefetch.md).
constexpr Duration kReadyWithin = Duration::Us(1500);

// Chosen: of the time between batches. Receiving one that was ready took 1.2 % in a run on a V100.
constexpr int64_t kLeastShare = 50;

// Chosen: of the time of the steps. What waits less often than that hardly ever waits.
constexpr double kHardlyEver = 0.05;

// PyTorch's profiler marks the iterator with this text; data_loader names of other frameworks
// come as annotations of the user.
bool IsLoaderName(std::string_view name) { return Contains(name, "DataLoader"); }

}  // namespace

LoaderScopes::LoaderScopes(const Graph& graph)
    : found_(FactOfTables<Found>(graph, [&] { return Find(graph); })) {}

LoaderScopes::Found LoaderScopes::Find(const Graph& graph) {
  const std::vector<Scope>& scopes = graph.tables().scopes;
  Found found;
  found.around.resize(scopes.size());
  found.owns_gap.resize(scopes.size(), false);
  for (size_t i = 0; i < scopes.size(); ++i) {
    const Scope& s = scopes[i];
    // Parents are earlier rows: scopes are made in order of their begin.
    bool inner = s.parent.valid() && s.parent.index() < i;
    ScopeId& around = found.around[i];
    if (inner) around = found.around[s.parent.index()];
    if (!around.valid() && IsLoaderName(graph.Name(s.name))) around = ScopeId(i);
    found.owns_gap[i] =
        s.kind == EventKind::kOp ? inner && found.owns_gap[s.parent.index()] : around.valid();
  }
  return found;
}

ScopeId LoaderScopes::Around(ScopeId scope) const {
  const std::vector<ScopeId>& around = found_->around;
  return scope.index() < around.size() ? around[scope.index()] : ScopeId::None();
}

bool LoaderScopes::OwnsGapOf(const Task& t) const {
  const std::vector<bool>& owns_gap = found_->owns_gap;
  return t.scope.index() < owns_gap.size() && owns_gap[t.scope.index()];
}

std::vector<Fetch> FindFetches(const Graph& graph, const LoaderScopes& loader) {
  std::vector<Fetch> fetches;
  const std::vector<Scope>& scopes = graph.tables().scopes;
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind != LaneKind::kThread) continue;
    for (TaskId t = lane.first; t.valid(); t = graph.task(t).lane_next) {
      const Task& task = graph.task(t);
      const ScopeId scope = loader.Around(task.scope);
      if (!scope.valid() || task.removed || task.kind != TaskKind::kHost) continue;
      if (fetches.empty() || fetches.back().scope != scope) fetches.push_back({.scope = scope});
      Fetch& fetch = fetches.back();
      fetch.tasks.push_back(t);
      fetch.work += task.duration;
      if (loader.OwnsGapOf(task)) fetch.work += task.gap;
      if (scopes[task.scope.index()].kind == EventKind::kOp) fetch.ops += task.duration;
    }
  }
  const auto begin = [&](const Fetch& f) { return graph.task(f.tasks.front()).recorded_start; };
  std::stable_sort(fetches.begin(), fetches.end(),
                   [&](const Fetch& a, const Fetch& b) { return begin(a) < begin(b); });
  return fetches;
}

Instant Called(const Graph& graph, const Fetch& fetch) {
  return graph.stalled_time().Steady(graph.task(fetch.tasks.front()).recorded_start);
}

Instant Returned(const Graph& graph, const Fetch& fetch) {
  return Called(graph, fetch) + RecordedLength(graph, fetch);
}

bool HeldUpBetween(const Graph& graph, const Fetch& first, const Fetch& last) {
  const auto called = [&](const Fetch& f) { return graph.task(f.tasks.front()).recorded_start; };
  return graph.stalled_time().HeldUp(called(first), called(last)) * 10 >=
         called(last) - called(first);
}

Duration RecordedLength(const Graph& graph, const Fetch& fetch) {
  // Graphs without recorded times have the work only.
  const Scope& scope = graph.tables().scopes[fetch.scope.index()];
  const StalledTime& stalled = graph.stalled_time();
  const Duration length = stalled.Steady(scope.end) - stalled.Steady(scope.begin);
  return length > Duration{} ? length : fetch.work;
}

Duration RecordedOps(const Graph& graph, const Fetch& fetch) {
  const std::vector<Scope>& scopes = graph.tables().scopes;
  Duration inside;
  ScopeId last;
  for (TaskId t : fetch.tasks) {
    ScopeId outermost;
    for (ScopeId s : ScopesAround(graph, graph.task(t).scope)) {
      if (s == fetch.scope) break;
      if (scopes[s.index()].kind == EventKind::kOp) outermost = s;
    }
    if (!outermost.valid() || outermost == last) continue;
    last = outermost;
    inside += scopes[outermost.index()].end - scopes[outermost.index()].begin;
  }
  return inside;
}

bool Waited(const Graph& graph, const Fetch& fetch) {
  return RecordedLength(graph, fetch) > kReadyWithin;
}

bool Counts(const Graph& graph, const Fetch& fetch) {
  const size_t step = graph.task(fetch.tasks.front()).step;
  if (graph.steps().size() <= 1) return true;
  return step > 0 && step < graph.steps().size() && graph.steps()[step].measured;
}

Duration FetchPeriod(const Graph& graph, const std::vector<Fetch>& fetches) {
  std::vector<Instant> begins, counted;
  for (const Fetch& f : fetches) {
    begins.push_back(Called(graph, f));
    if (Counts(graph, f)) counted.push_back(begins.back());
  }
  if (counted.size() < 2) counted = std::move(begins);
  if (counted.size() < 2) return RecordedLength(graph, fetches[0]);
  return (counted.back() - counted.front()) / static_cast<int64_t>(counted.size() - 1);
}

Duration RestOfStep(const Graph& graph, const std::vector<Fetch>& fetches) {
  // By recorded times, as an optimization before may have changed the work.
  std::vector<Duration> inside;
  for (const Fetch& f : fetches) {
    if (!Counts(graph, f)) continue;
    inside.push_back(fetches.size() > 1 ? RecordedLength(graph, f) : f.work);
  }
  if (inside.empty()) return {};
  if (inside.size() > 1) inside.pop_back();  // the period ends where the last one begins
  const Duration all = std::accumulate(inside.begin(), inside.end(), Duration{});
  return std::max(FetchPeriod(graph, fetches) - all / static_cast<int64_t>(inside.size()),
                  Duration{});
}

Duration WaitForWorkers(const Graph& graph, const std::vector<Fetch>& fetches, size_t workers,
                        size_t ahead) {
  struct Batch {
    Duration work, rest;  // to make it; from its arrival to the next call
  };
  std::vector<Batch> batches;
  const Duration usual = RestOfStep(graph, fetches);
  for (size_t k = 0; k < fetches.size(); ++k) {
    if (!Counts(graph, fetches[k])) continue;
    Duration rest = usual;
    if (k + 1 < fetches.size()) {
      rest = std::max(Called(graph, fetches[k + 1]) - Returned(graph, fetches[k]), Duration{});
    }
    batches.push_back({fetches[k].work, rest});
  }
  if (batches.empty()) return {};
  // Until no worker is on what it began with, and then until each had a turn. They begin spread
  // evenly: all at once they would be through all at once, too.
  const size_t most = workers * ahead, turn = 1 + workers / batches.size();
  const size_t laps = 2 + most / batches.size() + turn;
  std::vector<Instant> ready, received;
  Instant now = Instant::AtNs(0);
  Duration waited;
  for (size_t k = 0; k < laps * batches.size(); ++k) {
    const Batch& batch = batches[k % batches.size()];
    Instant begin = Instant::AtNs(0);
    if (k >= workers) begin = ready[k - workers];
    if (k >= most) begin = std::max(begin, received[k - most]);
    const double part = k < workers ? static_cast<double>(k) / static_cast<double>(workers) : 1;
    ready.push_back(begin + batch.work.Scaled(part));
    received.push_back(std::max(now, ready.back()));
    if (k >= (laps - turn) * batches.size()) waited += received.back() - now;
    now = received.back() + batch.rest;
  }
  return waited / static_cast<int64_t>(turn * batches.size());
}

namespace {

// Places of calls.
struct Waits {
  std::vector<size_t> counted;   // in steps that count
  std::vector<size_t> usual;     // of those, what waited as they usually do
  Duration all;                  // of `counted`
  std::optional<size_t> before;  // that before the first of `counted`, where it waited as long
};

Waits FindWaits(const Graph& graph, const std::vector<Fetch>& fetches) {
  Waits waits;
  for (size_t k = 0; k < fetches.size(); ++k) {
    if (!Counts(graph, fetches[k])) continue;
    waits.counted.push_back(k);
    waits.all += RecordedLength(graph, fetches[k]);
  }
  const auto calls = static_cast<int64_t>(std::max<size_t>(waits.counted.size(), 1));
  const auto waited = [&](size_t k) {
    const Duration half = waits.all / (2 * calls);
    return Waited(graph, fetches[k]) && RecordedLength(graph, fetches[k]) >= half;
  };
  std::ranges::copy_if(waits.counted, std::back_inserter(waits.usual), waited);
  if (!waits.counted.empty() && waits.counted.front() > 0 && waited(waits.counted.front() - 1)) {
    waits.before = waits.counted.front() - 1;
  }
  return waits;
}

}  // namespace

std::optional<LoaderRate> FindLoaderRate(const Graph& graph, const std::vector<Fetch>& fetches) {
  const Waits waits = FindWaits(graph, fetches);
  const auto& [counted, waited, all, before] = waits;
  std::vector<size_t> usual = waited;
  if (usual.size() == 1 && before) usual.insert(usual.begin(), *before);
  Duration time;
  int64_t batches = 0;
  for (size_t i = 1; i < usual.size(); ++i) {
    const Fetch &first = fetches[usual[i - 1]], &last = fetches[usual[i]];
    if (HeldUpBetween(graph, first, last)) continue;
    time += Returned(graph, last) - Returned(graph, first);
    batches += static_cast<int64_t>(usual[i] - usual[i - 1]);
  }
  if (batches == 0) return std::nullopt;
  // Batches that are ready take some time to receive, too.
  const auto calls = static_cast<int64_t>(counted.size());
  if (all * (kLeastShare * batches) < time * calls) return std::nullopt;
  LoaderRate rate = {.batch = time / batches,
                     .first = counted.front(),
                     .lay_ready = std::max(usual.front(), counted.front()) - counted.front(),
                     .is_sure = usual.size() > 2,
                     .shortest_rest = time / batches};
  for (size_t k = usual.front(); k < usual.back(); ++k) {
    rate.shortest_rest =
        std::min(rate.shortest_rest, Called(graph, fetches[k + 1]) - Returned(graph, fetches[k]));
  }
  return rate;
}

std::optional<FewWaits> FindFewWaits(const Graph& graph, const std::vector<Fetch>& fetches) {
  if (fetches.empty() || !HasWorkers(graph, fetches[0])) return std::nullopt;
  const Waits waits = FindWaits(graph, fetches);
  const size_t calls = waits.counted.size();
  FewWaits few = {.count = waits.usual.size(), .time = {}, .share = 0, .before = {}};
  if (calls < 2) return std::nullopt;
  for (size_t k : waits.usual) few.time += RecordedLength(graph, fetches[k]);
  const Duration steps = FetchPeriod(graph, fetches) * static_cast<int64_t>(calls);
  few.share = steps > Duration{} ? std::min(few.time.seconds() / steps.seconds(), 1.0) : 0;
  if (const auto rate = FindLoaderRate(graph, fetches)) {
    if (rate->is_sure) return std::nullopt;
    few.count = 2;
    return few;
  }
  if (few.count == 0) {
    if (!waits.before || calls >= kMadeAhead) return std::nullopt;
    few.before = RecordedLength(graph, fetches[*waits.before]);
    return few;
  }
  if (few.count > 1 || few.share <= kHardlyEver) return std::nullopt;
  const auto place = std::ranges::find(waits.counted, waits.usual[0]) - waits.counted.begin();
  const size_t ahead = static_cast<size_t>(place), behind = calls - 1 - ahead;
  if (std::min(ahead, behind) >= kMadeAhead) return std::nullopt;
  return few;
}

bool HasWorkers(const Graph& graph, const Fetch& fetch) {
  return graph.Name(graph.tables().scopes[fetch.scope.index()].name).find("MultiProcessing") !=
         std::string_view::npos;
}

bool HasNoWorkers(const Graph& graph, const Fetch& fetch) {
  return graph.Name(graph.tables().scopes[fetch.scope.index()].name).find("SingleProcess") !=
         std::string_view::npos;
}

bool FindsBatchesReady(const Graph& graph, const std::vector<Fetch>& fetches) {
  if (fetches.empty()) return true;
  if (FindLoaderRate(graph, fetches)) return false;
  std::vector<Duration> work;
  work.reserve(fetches.size());
  for (const Fetch& f : fetches) work.push_back(f.work);
  if (Median(work) <= kReadyWithin) return true;
  const auto counts = [&](const Fetch& f) { return Counts(graph, f); };
  return std::ranges::count_if(fetches, counts) > 2;
}

}  // namespace daydream
