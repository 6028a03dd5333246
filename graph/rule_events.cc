// Rules E1, E2: cudaStreamWaitEvent makes one stream wait for a point of another. Traces with
// synchronization records say which (E1). Others show only that a thread made the call, some also
// which stream waits (E2): what waited for what is told from where the call was made and from what
// the timing does not refute; execution traces also say who read what whom wrote.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string_view>

#include "base/median.h"
#include "base/sort_runs.h"
#include "graph/builder.h"
#include "graph/event_guesses.h"
#include "graph/large_pages.h"
#include "graph/tensor_sources.h"
#include "trace/rows/rows_of_kind.h"

namespace daydream {
namespace {

constexpr size_t kMostKept = 64;  // waits of streams that launch nothing more: bounds the work

enum class Place : uint8_t { kUnknown, kPlain, kInComm, kInNccl };

class EventRule {
 public:
  explicit EventRule(Builder& b)
      : b_(b), sources_(b), places_(LargeVector(b.tables->scopes.size(), Place::kUnknown)) {}

  void Run() {
    if (HasRecords()) {
      FromRecords();
    } else {
      for (const HostThread& thread : b_.threads) FollowThread(thread);
      AddGuesses();
    }
  }

 private:
  // Nsight Systems knows the waiting stream alone where events were not traced.
  bool HasRecords() const {
    return std::any_of(b_.trace.syncs.begin(), b_.trace.syncs.end(), [](const SyncDetail& s) {
      return s.kind == SyncKind::kStreamWaitEvent && s.wait_on_stream >= 0;
    });
  }

  void NoteStreams() {
    for (size_t i = 0; i < b_.stream_ops.size(); ++i) {
      if (b_.stream_ops[i].empty()) continue;
      const Lane& lane = b_.trace.lanes[i];
      lane_on_device_.try_emplace({lane.number, lane.device}, i);
      lane_of_number_.try_emplace(lane.number, i);
    }
  }

  // Of the streams with this number, the one of this GPU if there is one.
  LaneId StreamLane(int64_t number, int32_t device) const {
    const auto here = lane_on_device_.find({number, device});
    if (here != lane_on_device_.end()) return here->second;
    const auto elsewhere = lane_of_number_.find(number);
    return elsewhere == lane_of_number_.end() ? LaneId::None() : elsewhere->second;
  }

  // Rule E1.
  void FromRecords() {
    NoteStreams();
    for (size_t row : RowsOf(b_.trace, EventKind::kSync)) {
      if (b_.trace.detail[row] == Builder::kNone) continue;
      const SyncDetail& sync = b_.trace.syncs[b_.trace.detail[row]];
      if (sync.kind != SyncKind::kStreamWaitEvent) continue;
      const int32_t device = b_.trace.lanes[b_.trace.lane[row].index()].device;
      LaneId source = StreamLane(sync.wait_on_stream, device);
      LaneId target = StreamLane(sync.stream, device);
      if (!source.valid() || !target.valid()) continue;
      TaskId call = b_.CallOf(b_.trace.correlation[row]);
      Instant wait = call.valid() ? b_.Start(call) : b_.trace.start[row];
      TaskId record = b_.CallOf(sync.record_correlation);
      uint32_t from = b_.LastLaunchedBefore(source, record.valid() ? b_.Start(record) : wait);
      uint32_t to = FirstLaunchedAfter(target, wait);
      if (from != Builder::kNone && to != Builder::kNone) Add(from, to);
    }
  }

  uint32_t FirstLaunchedAfter(LaneId lane, Instant t) const {
    const std::vector<uint32_t>& stream = b_.stream_ops[lane.index()];
    auto it = std::partition_point(stream.begin(), stream.end(),
                                   [&](uint32_t op) { return b_.ops[op].call_start <= t; });
    return it == stream.end() ? Builder::kNone : *it;
  }

  bool Refuted(uint32_t from, uint32_t to) const {
    return b_.ops[from].end > b_.ops[to].start + kGranularity;
  }

  void Add(uint32_t from, uint32_t to) {
    if (Refuted(from, to) || from >= to || b_.ops[from].lane == b_.ops[to].lane) return;
    b_.event_waits.push_back({to, from});
  }

  // Of the innermost scope around it that says so. Scopes may be nested as deep as a file likes.
  Place PlaceOf(ScopeId scope) {
    Place place = Place::kPlain;
    std::vector<ScopeId> inside;  // of what says so
    for (; scope.valid(); scope = b_.tables->scopes[scope.index()].parent) {
      if (places_[scope.index()] != Place::kUnknown) {
        place = places_[scope.index()];
        break;
      }
      inside.push_back(scope);
      const std::string_view name = b_.trace.Name(b_.tables->scopes[scope.index()].name);
      if (name.starts_with("nccl:")) place = Place::kInNccl;
      if (name == "record_param_comms" || name.starts_with("c10d::")) place = Place::kInComm;
      if (place != Place::kPlain) break;
    }
    for (ScopeId s : inside) places_[s.index()] = place;
    return place;
  }

  // What FollowThread() reads of a call.
  void FetchCall(uint32_t i) const {
    const HostCall& call = b_.calls[i];
    if (call.kind == CallKind::kStreamWait) {
      FetchToRead(b_.graph.task(call.task).event);
      if (call.scope.valid()) FetchToRead(b_.tables->scopes[call.scope.index()]);
    } else if (const uint32_t op = b_.ops_of_call[i].first; op != Builder::kNone) {
      FetchToRead(b_.ops[op].kind);
    }
  }

  // Rule E2: the calls of one thread, in order.
  void FollowThread(const HostThread& thread) {
    LaneId current;                  // stream of the last launch that was not a collective
    std::vector<TaskId> comm_waits;  // waits in a communication scope since the last launch
    std::vector<TaskId> plain_waits;
    std::deque<uint32_t> pending;  // collectives that nothing has waited for yet
    for (uint32_t i = thread.first_call; i < thread.end_call; ++i) {
      const HostCall& call = b_.calls[i];
      if (const uint32_t next = i + kCallsAhead; next < thread.end_call) FetchCall(next);
      if (call.kind == CallKind::kStreamWait) {
        Place place = PlaceOf(call.scope);
        if (place == Place::kInComm) comm_waits.push_back(call.task);
        if (place == Place::kPlain) plain_waits.push_back(call.task);
        continue;
      }
      const uint32_t op = b_.ops_of_call[i].first;
      if (op == Builder::kNone) continue;
      bool collective = b_.ops[op].kind == TaskKind::kCollective;
      if (collective) {
        if (!comm_waits.empty() && current.valid()) {  // E2a
          uint32_t from = b_.LastLaunchedBefore(current, b_.ops[op].call_start);
          if (from != Builder::kNone) Add(from, op);
        }
        comm_waits.clear();
        pending.push_back(op);
        continue;
      }
      // E2c: the wait of the step for its oldest collective in flight.
      std::vector<TaskId>* waits[] = {&comm_waits, &plain_waits};
      for (std::vector<TaskId>* list : waits) {
        if (list->empty()) continue;
        bool oldest = list == &comm_waits || thread.backward;
        std::vector<TaskId> later;
        for (TaskId wait : *list) {
          if (later.size() < kMostKept && WaitsElsewhere(wait, b_.ops[op].lane)) {
            later.push_back(wait);
          } else if (oldest && !pending.empty()) {
            Add(pending.front(), op);
            pending.pop_front();
          } else if (!oldest) {
            AddUnknown(wait, op, current);
          }
        }
        *list = std::move(later);
      }
      current = b_.ops[op].lane;
    }
  }

  // Whether the record of the call says that another stream than this one waits.
  bool WaitsElsewhere(TaskId wait, LaneId lane) const {
    const uint32_t row = b_.graph.task(wait).event;
    if (row == Builder::kNone) return false;
    const SyncDetail* sync = b_.SyncOf(b_.trace.correlation[row]);
    return sync != nullptr && sync->stream >= 0 &&
           sync->stream != b_.trace.lanes[lane.index()].number;
  }

  // Rule E2d: the wait was for the last operation of some other stream: of one that made what is
  // read behind the wait, if that is known; else of the stream that the thread used last.
  void AddUnknown(TaskId wait, uint32_t op, LaneId current) {
    const ScopeId scope = b_.graph.task(wait).scope;
    unknown_.push_back({.at = b_.Start(wait),
                        .op = op,
                        .scope = scope.valid() ? b_.tables->scopes[scope.index()].name : NameId(0),
                        .current = current,
                        .makers = sources_.StreamsThatMade(b_.ops[op])});
  }

  void AddGuesses() {
    const EventGuesses guesses = GuessEvents(b_, std::move(unknown_));
    for (const auto& [to, from] : guesses.waits) Add(from, to);
    if (guesses.unanswered == 0) return;
    b_.report.warnings.push_back(fmt::format(
        "waits of streams for events that are left out: {}. The {} streams that were launched to "
        "last were all busy for longer, and nothing says which other was meant",
        guesses.unanswered, kMostAsked));
  }

  Builder& b_;
  const TensorSources sources_;
  std::vector<Place> places_;  // by scope
  std::vector<UnknownWait> unknown_;
  // The first stream of each number, of a GPU and of all.
  std::map<std::pair<int64_t, int32_t>, LaneId> lane_on_device_;
  std::map<int64_t, LaneId> lane_of_number_;
};

}  // namespace

void AddEventWaits(Builder& b) {
  EventRule(b).Run();
  AddDefaultStreamWaits(b);
  SortRuns(b.event_waits, std::less<>());
  b.event_waits.erase(std::unique(b.event_waits.begin(), b.event_waits.end()), b.event_waits.end());
  b.report.event_waits = b.event_waits.size();
  std::vector<Duration> lags;
  for (const auto& [to, from] : b.event_waits) {
    Duration lag = b.ops[to].start - b.ops[from].end;
    if (lag >= Duration{} && lag <= Duration::Us(10)) lags.push_back(lag);
  }
  if (!lags.empty()) b.typical.event = Median(std::move(lags));
}

}  // namespace daydream
