#include "report/questions/without_pause.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/windows.h"

namespace daydream {
namespace {

// Chosen: a program that goes on takes as long between operators. By so much less a pause is taken.
constexpr Duration kBetweenOperators = Duration::Us(100);
constexpr int kMostTries = 16;  // streams that one after the other allow less

class Cut {
 public:
  Cut(const Trace& trace, std::vector<Interval> pauses)
      : trace_(trace), pauses_(std::move(pauses)), out_(std::make_shared<Trace>(trace)) {}

  std::shared_ptr<const Trace> Run() {
    for (int i = 0; i < kMostTries; ++i) {
      if (!MoveHost()) return nullptr;
      const Duration over = MoveStreams();
      if (over == Duration{}) return behind_ ? std::move(out_) : nullptr;
      if (over > kBetweenOperators) return nullptr;
      for (Interval& p : pauses_) p.begin = p.begin + over;
    }
    return nullptr;
  }

 private:
  // Of the pauses, what lies before `t`.
  Duration Before(Instant t) const {
    Duration sum;
    for (const Interval& p : pauses_) {
      if (p.begin < t) sum += std::min(p.end, t) - p.begin;
    }
    return sum;
  }

  // Whether a stream that did its work until `end` was at work when a pause began that ended before
  // `launched`.
  bool StillWorked(Instant end, Instant launched) const {
    return std::ranges::any_of(
        pauses_, [&](const Interval& p) { return p.begin < end && p.end <= launched; });
  }

  // False: a thread worked within a pause.
  bool MoveHost() {
    for (size_t row = 0; row < trace_.rows(); ++row) {
      const EventKind kind = trace_.kind[row];
      if (trace_.lanes[trace_.lane[row].index()].kind != LaneKind::kThread) continue;
      const Instant start = trace_.start[row], end = trace_.End(row);
      const auto within = [&](const Interval& p) { return p.begin < start && start < p.end; };
      const bool works = kind == EventKind::kOp || kind == EventKind::kCall;
      if (works && std::ranges::any_of(pauses_, within)) return false;
      if (kind == EventKind::kCall) called_[trace_.correlation[row]] = start;
      out_->start[row] = start - Before(start);
      out_->duration[row] = end - Before(end) - out_->start[row];
    }
    return true;
  }

  // The longest time that work of a stream would begin too early.
  Duration MoveStreams() {
    Duration over;
    for (size_t lane = 0; lane < trace_.lanes.size(); ++lane) {
      if (trace_.lanes[lane].kind == LaneKind::kStream) over = std::max(over, MoveStream(lane));
    }
    return over;
  }

  // By when each operation was launched; one whose launch is not known goes with that before it.
  Duration MoveStream(size_t lane) {
    Duration less, over;
    Instant end = Instant::Min();  // without pauses
    for (size_t row = trace_.lane_begin[lane]; row < trace_.lane_begin[lane + 1]; ++row) {
      const auto call = called_.find(trace_.correlation[row]);
      const bool launched = call != called_.end() && trace_.correlation[row] != 0;
      const Duration before = less;
      if (launched) less = Before(call->second);
      out_->start[row] = trace_.start[row] - less;
      if (!IsGpuWork(trace_.kind[row])) continue;
      if (less > before && end > Instant::Min()) {
        over = std::max(over, end - out_->start[row]);
        behind_ = behind_ || StillWorked(end + before, call->second);
      }
      end = std::max(end, out_->start[row] + trace_.duration[row]);
    }
    return over;
  }

  const Trace& trace_;
  std::vector<Interval> pauses_;
  std::shared_ptr<Trace> out_;
  absl::flat_hash_map<uint32_t, Instant> called_;  // by correlation
  bool behind_ = false;                            // whether any stream was, at a pause
};

}  // namespace

std::shared_ptr<const Trace> WithoutPauses(const Graph& graph, std::span<const Stall> stalls) {
  std::vector<Stall> pauses;
  for (const Stall& s : stalls) {
    if (s.kind == StallKind::kOutside) pauses.push_back(s);
  }
  const std::shared_ptr<const Trace>& trace = graph.tables().trace;
  if (pauses.empty() || trace == nullptr) return nullptr;
  return Cut(*trace, StretchesTaken(pauses, graph)).Run();
}

}  // namespace daydream
