// Rule Q5: launches that wait for work from before the window, which was not recorded.
//
// A recorder that begins while the host is far ahead may miss what is in the queue then. The first
// launches find it full and return one after the other, each when an operation of that backlog
// starts, long before the first recorded operation does. So their returns tell when the backlog
// ran: it is put in front of the stream, a piece from each start to the next, and the launches wait
// for it. A GPU that is faster is through with it sooner.
//
// From the first of them on, what took a place took one that something of the backlog had left, and
// so did what was launched after the first recorded operation had started, as far as the queue is
// deep: the host need not keep it full. So many pieces there are.
//
// Launches may be slow for other reasons (kernels that are loaded when they are first used) while
// the first operation waits for another stream. So there is no backlog where it was told to wait,
// nor where less than half a queue was launched before it started, or more than one.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/builder.h"
#include "graph/queue.h"
#include "graph/queue_places.h"
#include "graph/quick_calls.h"
#include "trace/rows/rows_of_kind.h"

namespace daydream {
namespace {

class BacklogRule {
 public:
  BacklogRule(Builder& b, const QuickCalls& quick) : b_(b), quick_(quick) {}

  void Run() {
    b_.backlog.assign(b_.stream_ops.size(), 0);
    const auto first_waits = FirstWaits();
    for (const std::vector<uint32_t>& stream : b_.stream_ops) {
      if (stream.empty() || !b_.ops[stream.front()].call.valid()) continue;
      const GpuOp& first = b_.ops[stream.front()];
      const auto wait = first_waits.find(StreamOf(first.lane));
      if (wait != first_waits.end() && wait->second < first.call_start) continue;
      const std::vector<Launch> launches = LaunchesIntoFullQueue(stream);
      if (!launches.empty()) PutInFront(first, launches);
    }
  }

 private:
  // What took a place that something of the backlog had left.
  struct Launch {
    HostCall call;
    Instant freed;         // when that was, at the latest
    bool blocked = false;  // exactly then
    bool waits = false;    // the call needs the place: false behind the first place of a call
  };

  using Stream = std::pair<int32_t, int64_t>;  // device and number
  Stream StreamOf(LaneId lane) const {
    const Lane& stream = b_.trace.lanes[lane.index()];
    return {stream.device, stream.number};
  }

  // When each stream was first told to wait for another.
  absl::flat_hash_map<Stream, Instant> FirstWaits() const {
    absl::flat_hash_map<Stream, Instant> first;
    for (size_t row : RowsOf(b_.trace, EventKind::kSync)) {
      const uint32_t detail = b_.trace.detail[row];
      if (detail == Builder::kNone) continue;
      const SyncDetail& sync = b_.trace.syncs[detail];
      const TaskId call = b_.CallOf(b_.trace.correlation[row]);
      if (sync.kind != SyncKind::kStreamWaitEvent || !call.valid()) continue;
      const Stream stream{b_.trace.lanes[b_.trace.lane[row].index()].device, sync.stream};
      Instant& at = first.try_emplace(stream, b_.Start(call)).first->second;
      at = std::min(at, b_.Start(call));
    }
    return first;
  }

  // What took places of the backlog, in the order in which they got free; none where the launches
  // tell of no full queue.
  std::vector<Launch> LaunchesIntoFullQueue(const std::vector<uint32_t>& stream) const {
    const Instant first = b_.ops[stream.front()].start;
    std::vector<Launch> launches;
    size_t before = 0, clear = 0;  // launches before the first operation started
    size_t full = 0;               // that found room without waiting, at first
    TaskId last;
    for (uint32_t i : stream) {
      const GpuOp& op = b_.ops[i];
      const bool early = op.call_end < first, room = launches.size() + 1 < kDefaultQueueDepth;
      if (!op.call.valid() || (!early && !room)) break;
      if (!op.takes_place) continue;
      before += early ? 1 : 0;
      if (!room) continue;
      const HostCall& call = b_.calls[op.call_index];
      const CallKind kind = call.kind;
      const bool waits =
          op.call != std::exchange(last, op.call) && !b_.waits[op.call.index()] && MayBlock(kind);
      const bool is_long = quick_.IsLong(call), is_slow = quick_.IsSlow(call);
      const bool blocked = early && waits && (is_long || is_slow) && kind != CallKind::kGraphLaunch;
      if (!blocked && clear == 0) full = launches.size() + 1;
      launches.push_back({call, std::min(Freed(call), first), blocked, waits});
      clear += blocked && is_long && is_slow ? 1 : 0;
    }
    if (clear < kLeastBlockedCalls || before < kDeepInFlight) return {};
    if (before > kDefaultQueueDepth + kMostLostPlaces) return {};
    launches.resize(kDefaultQueueDepth - 1, {.call = {}, .freed = first});
    launches.erase(launches.begin(), launches.begin() + static_cast<std::ptrdiff_t>(full));
    std::ranges::stable_sort(launches, {}, &Launch::freed);
    return launches;
  }

  Instant Freed(const HostCall& call) const {
    return std::max(call.end - kQueueReleaseLag, call.start);
  }

  // Between launches that were blocked, pieces start one as long after the other.
  static std::vector<Instant> Starts(const std::vector<Launch>& launches, Instant first) {
    std::vector<Instant> starts;
    starts.reserve(launches.size() + 1);
    for (size_t i = 0; i < launches.size();) {
      size_t next = i + 1;
      while (next < launches.size() && !launches[next].blocked) ++next;
      const Instant from = launches[i].freed;
      const Duration all = (next < launches.size() ? launches[next].freed : first) - from;
      const auto count = static_cast<int64_t>(next - i);
      for (int64_t k = 0; k < count; ++k, ++i) {
        starts.push_back(std::min(from + Duration{all.ns / count * k}, launches[i].freed));
      }
    }
    starts.push_back(first);
    return starts;
  }

  void PutInFront(const GpuOp& first, const std::vector<Launch>& launches) {
    const NameId name = b_.graph.AddName("(launched before the recording)");
    const std::vector<Instant> starts = Starts(launches, first.start);
    b_.backlog[first.lane.index()] = launches.size();
    for (size_t i = 0; i < launches.size(); ++i) {
      const auto& [call, freed, blocked, waits] = launches[i];
      const Task piece{.duration = starts[i + 1] - starts[i],
                       .name = name,
                       .lane = first.lane,
                       .kind = TaskKind::kKernel};
      const TaskId before = b_.InsertBefore(first.task, piece, starts[i], starts[i + 1]);
      if (i == 0) b_.graph.mutable_task(before).earliest = starts[i];
      if (!waits) continue;
      const Duration until = call.end - starts[i];
      const Duration lag = blocked ? until : std::min(until, kQueueReleaseLag);
      b_.AddEdge(before, call.task, lag, Rule::kQueue, Anchor::kStart, Anchor::kEnd);
      if (!blocked) continue;
      Duration& own = b_.graph.mutable_task(call.task).duration;
      own = std::min(own, quick_.Usual(call));
      b_.waits[call.task.index()] = true;
      ++b_.report.queue_blocked;
    }
  }

  Builder& b_;
  const QuickCalls& quick_;
};

}  // namespace

void AddBacklog(Builder& b, const QuickCalls& quick) { BacklogRule(b, quick).Run(); }

}  // namespace daydream
