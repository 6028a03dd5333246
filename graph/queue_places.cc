#include "graph/queue_places.h"

#include <algorithm>
#include <map>

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

}  // namespace

bool MayBlock(CallKind kind) {
  return kind == CallKind::kLaunch || kind == CallKind::kGraphLaunch ||
         kind == CallKind::kCopyAsync || kind == CallKind::kMemset;
}

std::vector<std::vector<TaskId>> UnrecordedLaunches(const Graph& graph,
                                                    std::span<const Outcome> outcome_of) {
  struct Calls {
    bool copies = false;
    std::vector<Outcome> past;
    size_t recorded = 0;        // of these, up to the last whose operation was recorded
    std::vector<TaskId> after;  // calls behind that
  };
  std::vector<Instant> last(graph.lanes().size(), Instant::Min());  // launch of a recorded one
  std::vector<std::vector<TaskId>> found(graph.lanes().size());
  absl::flat_hash_map<NameId, CallKind> kinds;
  for (const GraphLane& thread : graph.lanes()) {
    if (thread.lane.kind != LaneKind::kThread) continue;
    std::map<NameId, Calls> apis;
    NameId last_name;  // most calls are of the API of the call before
    Calls* last_api = nullptr;
    for (TaskId call = thread.first; call.valid(); call = graph.task(call).lane_next) {
      const Task& task = graph.task(call);
      if (task.kind != TaskKind::kCall || task.removed) continue;
      if (task.name != last_name) {
        auto [kind, first] = kinds.try_emplace(task.name, CallKind::kOther);
        if (first) kind->second = ClassifyCall(graph.Name(task.name));
        const bool counts = MayBlock(kind->second) && kind->second != CallKind::kGraphLaunch;
        last_name = task.name;
        last_api = counts ? &apis[task.name] : nullptr;
        if (counts) last_api->copies = kind->second == CallKind::kCopyAsync;
      }
      if (last_api == nullptr) continue;
      const Outcome& outcome = outcome_of[call.index()];
      if (outcome.stream.valid()) {
        Instant& latest = last[outcome.stream.index()];
        latest = std::max(latest, task.recorded_start);
      }
      Calls& api = *last_api;
      api.past.push_back(outcome);
      if (outcome.stream.valid()) {
        api.recorded = api.past.size();
        api.after.clear();
      } else {
        api.after.push_back(call);
      }
    }
    for (auto& [name, api] : apis) {
      api.past.resize(api.recorded);
      if (api.past.empty()) continue;
      const size_t period = PeriodOf(api.past);
      if (period == 0 && api.copies) continue;
      for (size_t k = 0; k < api.after.size(); ++k) {
        const size_t back = period == 0 ? 1 : period - k % period;
        const Outcome& like = api.past[api.past.size() - back];
        if (like.stream.valid() && like.place) {
          found[like.stream.index()].push_back(api.after[k]);
        }
      }
    }
  }
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
