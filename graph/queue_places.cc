#include "graph/queue_places.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "graph/builder.h"

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
  std::vector<SubmittingCall> after;  // the last whose operation was recorded
  std::vector<Outcome> past;          // from that one on, as much as is looked at
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

void WalkBack(std::span<const SubmittingCall> calls, CallsByApi& apis) {
  NameId last_name;
  Calls* last_api = nullptr;
  size_t open = apis.size();
  for (size_t i = calls.size(); i-- > 0 && open > 0;) {
    const SubmittingCall& call = calls[i];
    if (call.name != last_name) {
      const auto api = apis.find(call.name);
      last_name = call.name;
      last_api = api == apis.end() ? nullptr : &api->second;
    }
    if (last_api == nullptr || last_api->past.size() == kMostPast) continue;
    if (last_api->past.empty() && !call.outcome.stream.valid()) {
      last_api->after.push_back(call);
      continue;
    }
    last_api->past.push_back(call.outcome);
    if (last_api->past.size() == kMostPast) --open;
  }
}

}  // namespace

bool RecordsEvent(const Graph& graph, TaskId call) {
  return ClassifyCall(graph.TaskName(call)) == CallKind::kEventRecord;
}

bool AnyUnrecorded(const Graph& graph, std::span<const Outcome> outcome_of) {
  Submits submits(graph);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    const bool call = task.kind == TaskKind::kCall && !task.removed;
    if (call && !outcome_of[i].stream.valid() && submits.Counts(task.name)) return true;
  }
  return false;
}

bool AnyUnrecorded(const Graph& graph, std::span<const TaskId> tasks,
                   const std::vector<bool>& submitted) {
  Submits submits(graph);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = graph.task(tasks[i]);
    const bool call = task.kind == TaskKind::kCall && !task.removed;
    if (call && !submitted[i] && submits.Counts(task.name)) return true;
  }
  return false;
}

std::vector<std::vector<TaskId>> UnrecordedLaunches(
    const Graph& graph, std::span<const std::vector<SubmittingCall>> calls) {
  std::vector<std::vector<SubmittingCall>> found(graph.lanes().size());
  Submits submits(graph);
  bool any = false;
  for (const std::vector<SubmittingCall>& of_thread : calls) {
    CallsByApi apis;  // that some call without operation is of
    for (const SubmittingCall& call : of_thread) {
      if (!call.outcome.stream.valid() && submits.Counts(call.name)) apis.try_emplace(call.name);
    }
    if (apis.empty()) continue;
    WalkBack(of_thread, apis);
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
  std::vector<std::vector<TaskId>> unrecorded(found.size());
  if (!any) return unrecorded;
  std::vector<Instant> last(found.size(), Instant::Min());  // launch of a recorded one
  for (const std::vector<SubmittingCall>& of_thread : calls) {
    for (const SubmittingCall& call : of_thread) {
      if (!call.outcome.stream.valid() || !submits.Counts(call.name)) continue;
      Instant& latest = last[call.outcome.stream.index()];
      latest = std::max(latest, call.start);
    }
  }
  for (size_t stream = 0; stream < found.size(); ++stream) {
    std::vector<SubmittingCall>& launches = found[stream];
    std::erase_if(launches, [&](const auto& call) { return call.start <= last[stream]; });
    std::ranges::sort(launches, {},
                      [](const auto& call) { return std::pair(call.start, call.task); });
    for (const SubmittingCall& call : launches) unrecorded[stream].push_back(call.task);
  }
  return unrecorded;
}

std::vector<std::vector<TaskId>> UnrecordedLaunches(const Builder& b) {
  const auto submits = [&](size_t call) { return MayBlock(b.calls[call].kind); };
  size_t lost = 0;
  for (size_t i = 0; i < b.calls.size(); ++i) {
    lost += submits(i) && b.ops_of_call[i].last == Builder::kNone;
  }
  std::vector<std::vector<SubmittingCall>> calls(b.trace.lanes.size());
  for (const HostThread& thread : b.threads) {
    for (uint32_t i = thread.first_call; lost > 0 && i < thread.end_call; ++i) {
      if (!submits(i)) continue;
      const HostCall& call = b.calls[i];
      const uint32_t last = b.ops_of_call[i].last;
      Outcome outcome;
      if (last != Builder::kNone) outcome = {b.ops[last].lane, b.ops[last].takes_place};
      calls[thread.lane.index()].push_back({call.task, call.name, call.start, outcome});
    }
  }
  return UnrecordedLaunches(b.graph, calls);
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
