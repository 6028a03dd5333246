// Rules B1-B7: calls that wait for the GPU. A recorded duration is own work plus waiting; only the
// own work stays a duration, the waiting becomes an edge from the awaited operation to the end of
// the call, so that a faster GPU makes the call shorter and a slower one longer.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/median.h"
#include "graph/builder.h"
#include "graph/last_of_streams.h"
#include "graph/recent_ends.h"

namespace daydream {
namespace {

constexpr Duration kFreeSkew = Duration::Us(15);      // rule B5
constexpr Duration kShortestFree = Duration::Us(50);  // rule B5
constexpr Duration kRecentCopy = Duration::Us(50);    // rule B7
constexpr Duration kLatestTarget = Duration::Us(60);  // rule B7
// Rule B2: from the start of a read to its submission, 5 to 15 us in most traces; used where the
// trace has no read that found its stream idle.
constexpr Duration kTypicalSubmit = Duration::Us(10);
constexpr uint64_t kStagedBytes = 64 << 10;  // rule B3: CUDA driver's staging buffer

struct Wait {
  HostCall* call = nullptr;          // of Builder::calls
  uint32_t target = Builder::kNone;  // binding operation
  std::vector<uint32_t> others;      // further operations the call may not return before, as far
                                     // as the wait before it did not tell them (device_waits.h)
  bool whole_device = false;         // waits for every stream
  bool own_copy = false;             // waits for the copy that it issued
  bool waited = true;                // false: everything was done before the call began
};

// What waits for the whole device, of one thread and kind, have told of each stream.
struct Told {
  bool any = false;               // wait of this thread was seen
  std::vector<uint32_t> by_lane;  // the last that was told
  // The last work of streams that is not told, by its end.
  std::set<std::pair<Instant, LaneId>> news;
  LaneId thread;
  std::map<LaneId, uint32_t> open;  // operations that the next wait tells again
};

constexpr size_t kKinds = static_cast<size_t>(CallKind::kQuery) + 1;

class BlockingCalls {
 public:
  explicit BlockingCalls(Builder& b) : b_(b), ends_(b), last_(b) {
    for (size_t lane = 0; lane < b.stream_ops.size(); ++lane) {
      if (!b.stream_ops[lane].empty())
        lane_of_number_.try_emplace(b.trace.lanes[lane].number, lane);
    }
  }

  void Run() {
    auto next = b_.special_calls.begin();
    for (const HostThread& thread : b_.threads) {
      last_copy_ = Builder::kNone;
      for (Told& told : told_) told.any = false;
      for (; next != b_.special_calls.end() && *next < thread.end_call; ++next) {
        Examine(b_.calls[*next]);
      }
    }
    LearnPosts();
    for (const Wait& wait : waits_) Apply(wait);
    if (!moved_) return;
    for (GpuOp& op : b_.ops) {
      if (op.call.valid()) op.call_end = b_.calls[op.call_index].end;
    }
  }

 private:
  // The last operation of one of Builder::calls, or kNone.
  uint32_t OpOfCall(const HostCall& call) const {
    return b_.ops_of_call[static_cast<size_t>(&call - b_.calls.data())].last;
  }

  uint32_t Correlation(const HostCall& call) const {
    return b_.trace.correlation[b_.graph.task(call.task).event];
  }

  void Examine(HostCall& call) {
    switch (call.kind) {
      case CallKind::kCopy:
      case CallKind::kCopyAsync:
        ExamineCopy(call);
        break;
      case CallKind::kDeviceSync:
        AddDeviceWait(call, call.end + kClockSkew);
        break;
      case CallKind::kFree:
        if (call.duration() >= kShortestFree) ExamineFree(call);
        break;
      case CallKind::kStreamSync:
      case CallKind::kEventSync:
        ExamineStreamSync(call);
        break;
      default:
        break;
    }
  }

  // Rules B2, B3, B4.
  void ExamineCopy(HostCall& call) {
    uint32_t index = OpOfCall(call);
    if (index == Builder::kNone) return;
    const GpuOp& op = b_.ops[index];
    last_copy_ = index;
    uint32_t row = b_.trace.detail[op.row];
    if (op.many || row == Builder::kNone || b_.trace.kind[op.row] != EventKind::kMemcpy) return;
    const CopyDetail& copy = b_.trace.copies[row];
    bool to_host = copy.from == Memory::kDevice &&
                   (copy.to == Memory::kPageable || copy.to == Memory::kPinned);
    bool to_device = copy.to == Memory::kDevice &&
                     (copy.from == Memory::kPageable || copy.from == Memory::kPinned);
    bool pageable = copy.from == Memory::kPageable || copy.to == Memory::kPageable;
    bool synchronous = call.kind == CallKind::kCopy && (to_host || to_device);
    bool starts_inside = op.start >= call.start && op.start <= call.end;
    if (to_host && (pageable || synchronous)) {
      if (starts_inside && call.end + kClockSkew >= op.end) Add(call, index);
    } else if (to_device && synchronous) {
      if (starts_inside) Add(call, index);
    } else if (to_device && pageable && copy.bytes > kStagedBytes && starts_inside) {
      Add(call, index);
    }
  }

  void Add(HostCall& call, uint32_t copy) {
    waits_.push_back({.call = &call, .target = copy, .own_copy = true});
    const GpuOp& op = b_.ops[copy];
    // The first of a stream may follow others that were launched before the recording.
    if (op.position == 0 || !StreamIdle(op, call.start)) return;
    idle_submits_.push_back(op.start - call.start);
  }

  bool StreamIdle(const GpuOp& op, Instant t) const {
    return op.position == 0 || b_.ops[b_.stream_ops[op.lane.index()][op.position - 1]].end <= t;
  }

  Told& ToldBy(const HostCall& call) { return told_[call.kind == CallKind::kFree]; }

  void GoTo(const HostCall& call) {
    for (const LastOfStreams::Change& change : last_.GoTo(call.start)) {
      for (Told& told : told_) {
        if (told.any) Note(change, told);
      }
    }
  }

  void Note(const LastOfStreams::Change& change, Told& told) const {
    if (change.before != Builder::kNone) told.news.erase({b_.ops[change.before].end, change.lane});
    if (change.now != Builder::kNone && change.now != told.by_lane[change.lane.index()]) {
      told.news.emplace(b_.ops[change.now].end, change.lane);
    }
  }

  // The first of a thread has all to tell.
  void Begin(Told& told) const {
    told.any = true;
    told.by_lane.assign(b_.stream_ops.size(), Builder::kNone);
    told.news.clear();
    for (size_t lane = 0; lane < b_.stream_ops.size(); ++lane) {
      Note({.lane = LaneId(lane), .now = last_.Of(LaneId(lane))}, told);
    }
  }

  // A wait for everything launched before `call`, on every stream: what ends behind `limit` belongs
  // to another device. Of it, what the wait before told is not told again.
  void AddDeviceWait(HostCall& call, Instant limit) {
    GoTo(call);
    Wait wait{.call = &call, .target = last_.LatestBy(limit), .whole_device = true};
    if (wait.target == Builder::kNone) return;
    Told& told = ToldBy(call);
    if (!told.any) Begin(told);
    const auto end = told.news.upper_bound({limit, LaneId::None()});
    for (auto it = told.news.begin(); it != end; ++it) {
      const uint32_t op = last_.Of(it->second);
      told.by_lane[it->second.index()] = op;
      if (op != wait.target) wait.others.push_back(op);
    }
    told.news.erase(told.news.begin(), end);
    std::ranges::sort(wait.others, {}, [&](uint32_t op) { return b_.ops[op].lane; });
    AddWait(std::move(wait));
  }

  void ExamineFree(HostCall& call) {
    GoTo(call);
    if (last_.AllEndBy(call.end + kFreeSkew)) AddDeviceWait(call, call.end + kFreeSkew);
  }

  // Rule B7: which stream does the call wait for?
  void ExamineStreamSync(HostCall& call) {
    uint32_t target = FromSyncRecord(call);
    if (target == Builder::kNone && call.kind == CallKind::kStreamSync) {
      // PyTorch reads a value by a copy and a synchronisation of the same stream.
      if (last_copy_ != Builder::kNone && b_.ops[last_copy_].end >= call.start - kRecentCopy) {
        target = b_.LastLaunchedBefore(b_.ops[last_copy_].lane, call.start);
      }
    }
    if (target != Builder::kNone && b_.ops[target].end > call.end + kClockSkew) {
      target = Builder::kNone;
    }
    if (target == Builder::kNone) target = LatestEndInside(call);
    if (target != Builder::kNone) AddWait({.call = &call, .target = target});
  }

  uint32_t FromSyncRecord(const HostCall& call) const {
    const SyncDetail* sync = b_.SyncOf(Correlation(call));
    if (sync == nullptr) return Builder::kNone;
    bool event = sync->kind == SyncKind::kEvent;
    int64_t stream = event ? sync->wait_on_stream : sync->stream;
    Instant before = call.start;
    if (event && sync->record_correlation != 0) {
      if (TaskId record = b_.CallOf(sync->record_correlation); record.valid()) {
        before = b_.Start(record);
      }
    }
    const auto lane = lane_of_number_.find(stream);
    return lane == lane_of_number_.end() ? Builder::kNone
                                         : b_.LastLaunchedBefore(lane->second, before);
  }

  uint32_t LatestEndInside(const HostCall& call) {
    const Instant from = std::max(call.start + Duration::Ns(1), call.end - kLatestTarget);
    return ends_.Latest(from, call.end,
                        [&](const GpuOp& op) { return op.call_start < call.start; });
  }

  void AddWait(Wait wait) {
    wait.waited = b_.ops[wait.target].end > wait.call->start;
    waits_.push_back(std::move(wait));
  }

  // Typical time from the awaited end to the return, by kind of call.
  void LearnPosts() {
    std::array<std::vector<Duration>, kKinds> posts;
    for (const Wait& w : waits_) {
      if (w.waited) {
        posts[static_cast<size_t>(w.call->kind)].push_back(w.call->end - b_.ops[w.target].end);
      }
    }
    for (size_t k = 0; k < kKinds; ++k) {
      if (!posts[k].empty()) post_[k] = Median(posts[k]);
    }
    if (!idle_submits_.empty()) typical_submit_ = Ranked(idle_submits_, idle_submits_.size() / 4);
  }

  void Apply(const Wait& w) {
    ++b_.report.blocking_calls;
    Duration post = post_[static_cast<size_t>(w.call->kind)];
    bool frees = w.call->kind == CallKind::kFree;
    TaskId waiter = w.own_copy ? SplitCopyCall(w) : frees ? SplitFree(w) : w.call->task;
    const Instant end = b_.End(waiter);
    const GpuOp& target = b_.ops[w.target];
    Duration lag = end - target.end;
    if (frees) post = {};
    if (!w.own_copy && !frees && w.waited) {
      // Own work cannot be told apart from the time before the awaited end: it is what is left.
      Task& task = b_.graph.mutable_task(w.call->task);
      task.duration = std::clamp(lag, Duration{}, task.duration);
    }
    if (w.waited) {
      if (b_.typical_lags() && !OtherDirection(w)) lag = post;
    } else {
      lag = std::min(post, lag);
    }
    b_.waits[waiter.index()] = true;
    b_.AddEdge(target.task, waiter, lag, Rule::kHostWait, Anchor::kEnd, Anchor::kEnd);
    if (w.whole_device) AwaitOthers(w, waiter, lag, post);
  }

  // An operation is told for good by an edge with the lag that later waits have for it, too. Until
  // then, because it ended just before the call or was its target, each wait tells it.
  void AwaitOthers(const Wait& w, TaskId waiter, Duration lag, Duration post) {
    Told& told = ToldBy(*w.call);
    const LaneId thread = b_.graph.task(w.call->task).lane;
    if (thread != told.thread) told.open.clear();
    told.thread = thread;
    for (uint32_t op : w.others) told.open[b_.ops[op].lane] = op;
    told.open.erase(b_.ops[w.target].lane);
    for (auto it = told.open.begin(); it != told.open.end();) {
      const GpuOp& op = b_.ops[it->second];
      const Duration slack = b_.End(waiter) - op.end;
      b_.AddEdge(op.task, waiter, std::min(post, slack), Rule::kHostWait, Anchor::kEnd,
                 Anchor::kEnd);
      it = slack >= post ? told.open.erase(it) : std::next(it);
    }
    if (lag != post) told.open[b_.ops[w.target].lane] = w.target;
  }

  // Lags of staged copies to the device are negative and depend on the size of the last chunk,
  // not on the call: no typical value stands for them.
  bool OtherDirection(const Wait& w) const {
    return w.own_copy && w.call->end < b_.ops[w.target].end;
  }

  // A call that waits for its own copy becomes a submitting part and a waiting part.
  TaskId SplitCopyCall(const Wait& w) {
    GpuOp& op = b_.ops[w.target];
    Instant begin = w.call->start, end = w.call->end;
    Duration submit = op.start - begin;
    if (!StreamIdle(op, begin)) submit = std::min(submit, typical_submit_);
    Task& call = b_.graph.mutable_task(w.call->task);
    Task wait{.gap = call.gap,
              .name = call.name,
              .lane = call.lane,
              .scope = call.scope,
              .kind = TaskKind::kWait};
    call.duration = submit;
    call.gap = {};
    b_.task_end[w.call->task.index()] = begin + submit;
    w.call->end = op.call_end = begin + submit;
    op.own_copy = true;
    moved_ |= op.many;
    TaskId t = b_.InsertAfter(w.call->task, wait, begin + submit, end);
    b_.waits.resize(b_.graph.size(), false);
    return t;
  }

  // Rule B5: freeing waits first and works afterwards.
  TaskId SplitFree(const Wait& w) {
    Task& call = b_.graph.mutable_task(w.call->task);
    Instant begin = w.call->start, end = w.call->end;
    Instant done = std::clamp(b_.ops[w.target].end, begin, end);
    Task wait{.earliest = call.earliest,
              .name = call.name,
              .lane = call.lane,
              .scope = call.scope,
              .kind = TaskKind::kWait};
    call.duration = end - done;
    call.earliest = {};
    b_.SetStart(w.call->task, done);
    w.call->start = done;
    moved_ |= OpOfCall(*w.call) != Builder::kNone;
    TaskId t = b_.InsertBefore(w.call->task, wait, begin, done);
    b_.waits.resize(b_.graph.size(), false);
    return t;
  }

  Builder& b_;
  RecentEnds ends_;
  LastOfStreams last_;
  std::map<int64_t, LaneId> lane_of_number_;  // the first stream of each
  std::vector<Wait> waits_;
  std::vector<Duration> idle_submits_;
  Duration typical_submit_ = kTypicalSubmit;
  std::array<Duration, kKinds> post_{};
  std::array<Told, 2> told_;  // waits for the device, calls that free
  uint32_t last_copy_ = Builder::kNone;
  bool moved_ = false;  // a call that launched something, or something else as well
};

}  // namespace

void AddBlockingCalls(Builder& b) {
  b.waits.assign(b.graph.size(), false);
  BlockingCalls(b).Run();
}

}  // namespace daydream
