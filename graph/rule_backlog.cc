// Rule Q5: launches that wait for work from before the window, which was not recorded.
//
// A recorder that begins while the host is far ahead may miss what is in the queue then. The first
// launches find it full and return one after the other, each when an operation of that backlog
// starts, long before the first recorded operation does. So their returns tell when the backlog
// ran: it is put in front of the stream, a piece from each start to the next, and the launches wait
// for it. A GPU that is faster is through with it sooner.
#include <algorithm>

#include "graph/builder.h"
#include "graph/queue.h"
#include "graph/queue_places.h"
#include "graph/quick_calls.h"

namespace daydream {
namespace {

class BacklogRule {
 public:
  explicit BacklogRule(Builder& b) : b_(b), quick_(QuickCalls(b)) {}

  void Run() {
    b_.backlog.assign(b_.stream_ops.size(), 0);
    for (const std::vector<uint32_t>& stream : b_.stream_ops) {
      if (stream.empty() || !b_.ops[stream.front()].call.valid()) continue;
      const std::vector<TaskId> blocked = BlockedBefore(stream);
      if (!blocked.empty()) PutInFront(b_.ops[stream.front()], blocked);
    }
  }

 private:
  Duration Own(TaskId call) const { return quick_[b_.graph.task(call).name.index()]; }

  // Launches that took long and returned before the first operation of the stream started; none
  // where too few say so.
  std::vector<TaskId> BlockedBefore(const std::vector<uint32_t>& stream) const {
    const Instant first = b_.ops[stream.front()].start;
    std::vector<TaskId> blocked;
    size_t clear = 0;
    TaskId last;
    for (uint32_t i : stream) {
      const GpuOp& op = b_.ops[i];
      if (!op.call.valid() || op.call_end >= first) break;
      if (op.call == last || !TakesPlace(b_.graph, op.task)) continue;
      last = op.call;
      const CallKind kind = b_.KindOf(op.call);
      if (b_.waits[op.call.index()] || !MayBlock(kind) || kind == CallKind::kGraphLaunch) continue;
      const Duration took = b_.RecordedDuration(op.call);
      const bool is_long = took > kLongCall, is_slow = took > Own(op.call) * kTimesAsLong;
      if (is_long || is_slow) blocked.push_back(op.call);
      clear += is_long && is_slow ? 1 : 0;
    }
    if (clear < kLeastBlockedCalls) blocked.clear();
    // Of several threads, too, in the order in which they returned.
    std::ranges::stable_sort(blocked, {}, [&](TaskId call) { return Released(call); });
    return blocked;
  }

  // When the operation started whose place the call was given.
  Instant Released(TaskId call) const {
    return std::max(b_.End(call) - kQueueReleaseLag, b_.Start(call));
  }

  void PutInFront(const GpuOp& first, const std::vector<TaskId>& blocked) {
    const NameId name = b_.graph.AddName("(launched before the recording)");
    const auto start = [&](size_t i) {
      return i < blocked.size() ? Released(blocked[i]) : first.start;
    };
    b_.backlog[first.lane.index()] = blocked.size();
    for (size_t i = 0; i < blocked.size(); ++i) {
      const TaskId call = blocked[i];
      const Task piece{.duration = start(i + 1) - start(i),
                       .name = name,
                       .lane = first.lane,
                       .kind = TaskKind::kKernel};
      const TaskId before = b_.InsertBefore(first.task, piece, start(i), start(i + 1));
      if (i == 0) b_.graph.mutable_task(before).earliest = start(i);
      b_.AddEdge(before, call, b_.End(call) - start(i), Rule::kQueue, Anchor::kStart, Anchor::kEnd);
      Duration& own = b_.graph.mutable_task(call).duration;
      own = std::min(own, Own(call));
      b_.waits[call.index()] = true;
      ++b_.report.queue_blocked;
    }
  }

  Builder& b_;
  const std::vector<Duration> quick_;  // by NameId
};

}  // namespace

void AddBacklog(Builder& b) { BacklogRule(b).Run(); }

}  // namespace daydream
