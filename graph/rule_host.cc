// Rules C1-C5: each CPU thread becomes a chain of host work and API calls that covers the time
// from its first to its last event without a hole. A stretch of time belongs to the innermost op
// that is open; time outside of any op is the gap of the task before it.
#include <algorithm>
#include <string_view>

#include "graph/builder.h"
#include "graph/large_pages.h"
#include "trace/range_names.h"

namespace daydream {
namespace {

bool IsBackwardName(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function")) return true;
  if (name.starts_with("torch::autograd::")) return true;
  size_t at = name.rfind("Backward");
  if (at == std::string_view::npos) return false;
  std::string_view rest = name.substr(at + 8);
  return std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsStepMark(std::string_view name) {
  return name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.") || IsMarkedStep(name);
}

// Threads that neither run ops nor launch work (watchdogs, pin-memory threads) say nothing about
// the step; rule C5 leaves them out.
bool TakesPart(const Builder& b, LaneId lane) {
  const Trace& t = b.trace;
  for (size_t row = t.lane_begin[lane.index()]; row < t.lane_begin[lane.index() + 1]; ++row) {
    switch (t.kind[row]) {
      case EventKind::kOp:
      case EventKind::kAnnotation:
        return true;
      case EventKind::kCall: {
        CallKind kind = b.call_kind[t.name[row].index()];
        if (kind != CallKind::kQuery && kind != CallKind::kOther) return true;
        break;
      }
      default:
        break;
    }
  }
  return false;
}

// Of Builder::special_calls.
bool IsSpecial(CallKind kind) {
  switch (kind) {
    case CallKind::kOther:
    case CallKind::kLaunch:
    case CallKind::kMemset:
    case CallKind::kEventRecord:
    case CallKind::kQuery:
      return false;
    default:
      return true;
  }
}

class ThreadSweep {
 public:
  ThreadSweep(Builder& b, LaneId lane, std::vector<uint8_t>& name_class)
      : b_(b), lane_(lane), name_class_(name_class) {
    thread_.lane = lane;
    thread_.first_call = static_cast<uint32_t>(b.calls.size());
    const Lane& l = b.trace.lanes[lane.index()];
    thread_.is_process_main = l.number == l.process;
  }

  HostThread Run() {
    const Trace& t = b_.trace;
    size_t begin = t.lane_begin[lane_.index()], end = t.lane_begin[lane_.index() + 1];
    cursor_ = t.start[begin];
    ReserveLarge(thread_.tasks, 2 * (end - begin));
    ReserveLarge(thread_.own, end - begin);
    for (size_t row = begin; row < end; ++row) {
      CloseUntil(t.start[row]);
      if (t.kind[row] == EventKind::kCall) {
        AddCall(row);
      } else if (t.kind[row] != EventKind::kSync && !IsGpuWork(t.kind[row])) {
        Open(row);
      }
    }
    CloseUntil(Instant::AtNs(std::numeric_limits<int64_t>::max()));
    if (!thread_.tasks.empty()) {
      Task& first = b_.graph.mutable_task(thread_.tasks.front());
      first.earliest = first.recorded_start;
      b_.graph.mutable_task(thread_.tasks.back()).gap = {};
    }
    thread_.end_call = static_cast<uint32_t>(b_.calls.size());
    return std::move(thread_);
  }

 private:
  struct OpenScope {
    ScopeId scope;
    Instant end;
    ScopeId context;  // innermost scope that is not an op
    bool op;
    bool engine;  // in a range kEngineRange, which stands for the engine's ops
  };

  uint32_t LastCall() const { return static_cast<uint32_t>(b_.calls.size() - 1); }
  ScopeId Current() const { return stack_.empty() ? ScopeId::None() : stack_.back().scope; }
  ScopeId Context() const { return stack_.empty() ? ScopeId::None() : stack_.back().context; }
  bool InOp() const { return !stack_.empty() && stack_.back().op; }
  bool InEngine() const { return !stack_.empty() && stack_.back().engine; }

  // Gives the time from the cursor to `until` to whatever is open.
  void Spend(Instant until) {
    if (until <= cursor_) return;
    if (!InOp() && last_.valid() && last_context_ == Context()) {
      b_.graph.mutable_task(last_).gap += until - cursor_;
    } else {
      const ScopeId scope = Current();
      const NameId name = scope.valid() ? b_.tables->scopes[scope.index()].name : NameId(0);
      Add(TaskKind::kHost, name, Builder::kNone, until);
    }
    cursor_ = until;
  }

  // From the cursor on, in what is open.
  void Add(TaskKind kind, NameId name, uint32_t event, Instant until) {
    const ScopeId scope = Current();
    last_ = b_.Append({.kind = kind,
                       .name = name,
                       .lane = lane_,
                       .scope = scope,
                       .event = event,
                       .duration = until - cursor_},
                      cursor_, until);
    last_context_ = Context();
    thread_.tasks.push_back(last_);
    if (kind != TaskKind::kCall) return;
    b_.calls.push_back({last_, name, scope, b_.KindOf(last_), cursor_, until});
    if (IsSpecial(b_.calls.back().kind)) b_.special_calls.push_back(LastCall());
  }

  void CloseUntil(Instant t) {
    while (!stack_.empty() && stack_.back().end <= t) {
      Spend(stack_.back().end);
      stack_.pop_back();
    }
    if (t.ns != std::numeric_limits<int64_t>::max()) Spend(t);
  }

  void Open(size_t row) {
    const Trace& t = b_.trace;
    Instant end = t.End(row);
    if (!stack_.empty()) end = std::min(end, stack_.back().end);  // children stay inside
    ScopeId id(b_.tables->scopes.size());
    bool op = t.kind[row] == EventKind::kOp;
    b_.tables->scopes.push_back({.name = t.name[row],
                                 .parent = Current(),
                                 .kind = t.kind[row],
                                 .lane = lane_,
                                 .begin = t.start[row],
                                 .end = end,
                                 .detail = op ? t.detail[row] : Builder::kNone});
    if (op && !InOp() && !InEngine()) {
      AddOwn({t.start[row], end, IsBackward(row)});
    }
    if (!op && NameClass(t.name[row]) == kMark) thread_.has_marks = true;
    bool engine = InEngine() || (!op && t.EventName(row) == kEngineRange);
    if (engine && !op && !InOp() && !InEngine()) AddOwn({t.start[row], end, true});
    stack_.push_back({id, end, op ? Context() : id, op, engine});
  }

  void AddOwn(const OwnEvent& event) {
    thread_.own.push_back(event);
    thread_.autograd += event.autograd;
  }

  void AddCall(size_t row) {
    const Trace& t = b_.trace;
    const uint32_t correlation = t.correlation[row];
    if (b_.calls.size() > thread_.first_call && t.start[row] < b_.calls.back().end) {
      // A driver call inside a runtime call (rule C2): one task, two correlation ids.
      if (b_.CallIndex(correlation) == Builder::kNone) b_.SetCallOf(correlation, LastCall());
      ++b_.report.nested_calls;
      return;
    }
    Instant end = std::max(t.End(row), cursor_);
    if (!InOp() && !InEngine()) AddOwn({cursor_, end, false});
    Add(TaskKind::kCall, t.name[row], static_cast<uint32_t>(row), end);
    cursor_ = end;
    if (b_.CallIndex(correlation) == Builder::kNone || !IsDriverCall(t.EventName(row))) {
      b_.SetCallOf(correlation, LastCall());
    }
  }

  // By its name, or because the profiler knows which thread ran the forward op. It writes 0 to ops
  // that are no backward.
  bool IsBackward(size_t row) {
    const Trace& t = b_.trace;
    if (NameClass(t.name[row]) == kBackward) return true;
    return t.detail[row] != Builder::kNone && t.ops[t.detail[row]].forward_thread > 0;
  }

  static constexpr uint8_t kUnknown = 0, kPlain = 1, kBackward = 2, kMark = 3;
  uint8_t NameClass(NameId id) {
    uint8_t& c = name_class_[id.index()];
    if (c == kUnknown) {
      std::string_view name = b_.trace.Name(id);
      c = IsBackwardName(name) ? kBackward : IsStepMark(name) ? kMark : kPlain;
    }
    return c;
  }

  Builder& b_;
  LaneId lane_;
  std::vector<uint8_t>& name_class_;
  HostThread thread_;
  std::vector<OpenScope> stack_;
  Instant cursor_;
  TaskId last_;
  ScopeId last_context_;
};

// Rule T0. The backward engine's thread runs (at least a tenth) autograd work outermost and holds
// no marks of the training loop.
bool RunsBackward(const HostThread& thread) {
  return thread.autograd > 0 && thread.autograd * 10 >= thread.own.size() && !thread.has_marks &&
         !thread.is_process_main;
}

}  // namespace

void AddHostThreads(Builder& b) {
  std::vector<uint8_t> name_class(b.trace.names->size(), 0);
  for (size_t i = 0; i < b.trace.lanes.size(); ++i) {
    LaneId lane(i);
    size_t rows = b.trace.lane_begin[i + 1] - b.trace.lane_begin[i];
    if (b.trace.lanes[i].kind != LaneKind::kThread || rows == 0) continue;
    if (!TakesPart(b, lane)) {
      ++b.report.threads_left_out;
      b.report.events_left_out += rows;
      continue;
    }
    b.threads.push_back(ThreadSweep(b, lane, name_class).Run());
    b.threads.back().backward = RunsBackward(b.threads.back());
  }
}

}  // namespace daydream
