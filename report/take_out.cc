// What stalls took of a recording, and the recording without it.
#include <algorithm>
#include <utility>
#include <vector>

#include "graph/stalled_time.h"
#include "report/stalls.h"
#include "report/windows.h"

namespace daydream {
namespace {

// When a stall was, as recorded.
Interval StretchOf(const Graph& graph, const Stall& s) {
  const Task& t = graph.task(s.task);
  const Instant begin = s.gap ? t.recorded_start + t.duration : t.recorded_start;
  return {begin, begin + s.time};
}

}  // namespace

Duration TakenTogether(const Graph& graph, std::vector<const Stall*> stalls) {
  std::sort(stalls.begin(), stalls.end(), [&](const Stall* a, const Stall* b) {
    return StretchOf(graph, *a).begin < StretchOf(graph, *b).begin;
  });
  Duration sum;
  Instant end = Instant::Min();
  for (const Stall* s : stalls) {
    const Instant begin = StretchOf(graph, *s).begin;
    const Instant until = begin + s->taken();
    if (until > end) sum += until - std::max(begin, end);
    end = std::max(end, until);
  }
  return sum;
}

std::vector<Interval> RecordedGpuWork(const Graph& graph) {
  std::vector<Interval> busy;
  for (const Task& t : graph.tasks()) {
    if (IsGpu(t.kind) && !t.removed) {
      busy.push_back({t.recorded_start, t.recorded_start + t.duration});
    }
  }
  return Union(std::move(busy));
}

std::vector<Interval> StretchesTaken(std::span<const Stall> stalls, const Graph& graph) {
  std::vector<Interval> taken;
  taken.reserve(stalls.size());
  for (const Stall& s : stalls) {
    const Instant end = StretchOf(graph, s).end;
    taken.push_back({end - s.taken(), end});
  }
  return Union(std::move(taken));
}

void MarkStalls(const Stalls& stalls, Graph& graph) {
  std::vector<Stall> kept;
  for (const Stall& s : stalls.waits) {
    if (s.kind != StallKind::kBatch) kept.push_back(s);
  }
  if (stalls.all.empty() && kept.empty()) return;
  graph.SetStalledTime({StretchesTaken(stalls.all, graph), StretchesTaken(kept, graph)});
}

Duration IdleMeanwhile(std::span<const Stall> stalls, const Graph& graph) {
  const std::vector<Interval> busy = RecordedGpuWork(graph);
  Duration idle;
  for (const Interval& taken : StretchesTaken(stalls, graph)) {
    idle += taken.end - taken.begin - Inside(busy, {0, taken.begin, taken.end});
  }
  return idle;
}

bool IsUnexplained(const Task& t) {
  return t.kind == TaskKind::kDelay && t.detail == Id<void>::kNoneValue;
}

void TakeOut(std::span<const Stall> stalls, Graph& graph) {
  if (stalls.empty()) return;
  struct Cut {
    Interval stretch;
    Duration taken;
    LaneId lane;
  };
  std::vector<Cut> cuts;
  for (const Stall& s : stalls) {
    cuts.push_back({StretchOf(graph, s), s.taken(), graph.task(s.task).lane});
  }
  const std::vector<Interval> gone = StretchesTaken(stalls, graph);
  for (const Stall& s : stalls) {
    Task& t = graph.mutable_task(s.task);
    Duration& time = s.gap ? t.gap : t.duration;
    time = std::max(time - s.taken(), Duration{});
  }
  std::vector<std::pair<Instant, Duration>> before;  // by end: taken until then
  before.reserve(cuts.size());
  for (const Cut& c : cuts) before.emplace_back(c.stretch.end, c.taken);
  std::sort(before.begin(), before.end());
  for (size_t i = 1; i < before.size(); ++i) before[i].second += before[i - 1].second;
  std::sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) {
    return std::pair(a.stretch.begin, a.lane) < std::pair(b.stretch.begin, b.lane);
  });
  for (size_t i = 0; i < graph.size(); ++i) {
    Task& t = graph.mutable_task(TaskId(i));
    if (t.removed) continue;
    const auto next = std::partition_point(before.begin(), before.end(),
                                           [&](const auto& b) { return b.first <= t.earliest; });
    if (next != before.begin()) t.earliest = t.earliest - std::prev(next)->second;
    if (IsUnexplained(t)) {
      const Window delay{0, t.recorded_start, t.recorded_start + t.duration};
      t.duration = t.duration - Inside(gone, delay);
      continue;
    }
    if (t.gap == Duration{} || graph.lane(t.lane).lane.kind != LaneKind::kThread) continue;
    const Instant gap_begin = t.recorded_start + t.duration, gap_end = gap_begin + t.gap;
    auto c = std::partition_point(cuts.begin(), cuts.end(),
                                  [&](const Cut& cut) { return cut.stretch.begin < gap_begin; });
    for (; c != cuts.end() && c->stretch.begin <= gap_end; ++c) {
      const bool waited = t.lane != c->lane && t.gap >= c->taken && c->stretch.end <= gap_end;
      if (waited) t.gap = t.gap - c->taken;
    }
  }
}

}  // namespace daydream
