#include "graph/queue_places.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace daydream {
namespace {

// Copies often alternate between kinds; longer patterns are rare.
constexpr size_t kLongestPattern = 8, kPatternOver = 64;

// After how many calls outcomes repeat, in nine of ten of the last; 0: they do not.
size_t PeriodOf(std::span<const Outcome> past) {
  for (size_t period = 1; period <= kLongestPattern && period * 2 <= past.size(); ++period) {
    const size_t over = std::min(kPatternOver, past.size() - period);
    size_t same = 0;
    for (size_t i = past.size() - over; i < past.size(); ++i) same += past[i] == past[i - period];
    if (same * 10 >= over * 9) return period;
  }
  return 0;
}

// How much of the past PeriodOf() looks at.
constexpr size_t kMostPast = kPatternOver + kLongestPattern;

// Calls of one API on one thread, the latest first.
struct Calls {
  std::vector<TaskId> after;  // the last whose operation was recorded
  std::vector<Outcome> past;  // from that one on, as much as is looked at
};
using CallsByApi = absl::flat_hash_map<NameId, Calls>;

// Names of APIs whose operations take places.
class Submits {
 public:
  explicit Submits(const Graph& graph) : graph_(graph) {}
  bool Counts(NameId name) {
    if (name == last_) return counts_;
    const CallKind kind = KindOf(name);
    last_ = name;
    return counts_ = MayBlock(kind) && kind != CallKind::kGraphLaunch;
  }
  CallKind KindOf(NameId name) {
    auto [kind, first] = kinds_.try_emplace(name, CallKind::kOther);
    if (first) kind->second = ClassifyCall(graph_.Name(name));
    return kind->second;
  }

 private:
  const Graph& graph_;
  absl::flat_hash_map<NameId, CallKind> kinds_;
  NameId last_;  // most calls are of the API of the call before
  bool counts_ = false;
};

// Visits calls that submit work, in no order.
template <class Visit>
void ForEachSubmission(const Graph& graph, std::span<const Outcome> outcome_of, bool recorded,
                       Submits& submits, const Visit& visit) {
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    const bool call = task.kind == TaskKind::kCall && !task.removed;
    if (!call || outcome_of[i].stream.valid() != recorded) continue;
    if (graph.lane(task.lane).lane.kind == LaneKind::kThread && submits.Counts(task.name)) {
      visit(task, outcome_of[i]);
    }
  }
}

void WalkBack(const Graph& graph, const GraphLane& thread, std::span<const Outcome> outcome_of,
              CallsByApi& apis) {
  NameId last_name;
  Calls* last_api = nullptr;
  size_t open = apis.size();
  for (TaskId t = thread.last; t.valid() && open > 0; t = graph.task(t).lane_prev) {
    const Task& task = graph.task(t);
    if (task.kind != TaskKind::kCall || task.removed) continue;
    if (task.name != last_name) {
      const auto api = apis.find(task.name);
      last_name = task.name;
      last_api = api == apis.end() ? nullptr : &api->second;
    }
    if (last_api == nullptr || last_api->past.size() == kMostPast) continue;
    const Outcome& outcome = outcome_of[t.index()];
    if (last_api->past.empty() && !outcome.stream.valid()) {
      last_api->after.push_back(t);
      continue;
    }
    last_api->past.push_back(outcome);
    if (last_api->past.size() == kMostPast) --open;
  }
}

}  // namespace

bool MayBlock(CallKind kind) {
  return kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch ||
         kind == CallKind::kCopyAsync || kind == CallKind::kMemset;
}

bool RecordsEvent(const Graph& graph, TaskId call) {
  return ClassifyCall(graph.TaskName(call)) == CallKind::kEventRecord;
}

std::vector<std::vector<TaskId>> UnrecordedLaunches(const Graph& graph,
                                                    std::span<const Outcome> outcome_of) {
  std::vector<std::vector<TaskId>> found(graph.lanes().size());
  Submits submits(graph);
  std::vector<CallsByApi> apis_of(graph.lanes().size());  // that some call without operation is of
  ForEachSubmission(
      graph, outcome_of, /*recorded=*/false, submits,
      [&](const Task& task, const Outcome&) { apis_of[task.lane.index()].try_emplace(task.name); });
  bool any = false;
  for (size_t lane = 0; lane < apis_of.size(); ++lane) {
    CallsByApi& apis = apis_of[lane];
    if (apis.empty()) continue;
    WalkBack(graph, graph.lanes()[lane], outcome_of, apis);
    for (auto& [name, api] : apis) {
      if (api.past.empty() || api.after.empty()) continue;
      std::ranges::reverse(api.past);
      std::ranges::reverse(api.after);
      const size_t period = PeriodOf(api.past);
      if (period == 0 && submits.KindOf(name) == CallKind::kCopyAsync) continue;
      for (size_t k = 0; k < api.after.size(); ++k) {
        const size_t back = period == 0 ? 1 : period - k % period;
        const Outcome& like = api.past[api.past.size() - back];
        if (!like.stream.valid() || !like.place) continue;
        found[like.stream.index()].push_back(api.after[k]);
        any = true;
      }
    }
  }
  if (!any) return found;
  std::vector<Instant> last(graph.lanes().size(), Instant::Min());  // launch of a recorded one
  ForEachSubmission(graph, outcome_of, /*recorded=*/true, submits,
                    [&](const Task& task, const Outcome& outcome) {
                      Instant& latest = last[outcome.stream.index()];
                      latest = std::max(latest, task.recorded_start);
                    });
  const auto start = [&](TaskId call) { return graph.task(call).recorded_start; };
  for (size_t stream = 0; stream < found.size(); ++stream) {
    std::vector<TaskId>& calls = found[stream];
    std::erase_if(calls, [&](TaskId call) { return start(call) <= last[stream]; });
    std::sort(calls.begin(), calls.end(),
              [&](TaskId x, TaskId y) { return std::pair(start(x), x) < std::pair(start(y), y); });
  }
  return found;
}

std::vector<LaneId> StreamsOfQueue(const Graph& graph, LaneId lane) {
  const GraphLane& own = graph.lane(lane);
  if (own.shared_queue == 0) return {lane};
  std::vector<LaneId> streams;
  for (size_t i = 0; i < graph.lanes().size(); ++i) {
    const GraphLane& other = graph.lanes()[i];
    const bool same = other.shared_queue == own.shared_queue && other.lane.rank == own.lane.rank &&
                      other.lane.device == own.lane.device;
    if (same) streams.push_back(LaneId(i));
  }
  return streams;
}

}  // namespace daydream
