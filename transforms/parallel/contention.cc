#include "transforms/parallel/contention.h"

#include <algorithm>

namespace daydream {
namespace {

// Work on one side: ready at, and how much at full rate.
struct Piece {
  TaskId task;
  double ready = 0, work = 0, start = 0, end = 0;
};

constexpr double kNoTime = 1e300;

// Where one side is: pieces run one after the other, none before it is ready.
class Side {
 public:
  explicit Side(std::vector<Piece>& pieces) : pieces_(pieces) {
    if (!pieces.empty()) left_ = pieces[0].work;
  }
  bool done() const { return at_ >= pieces_.size(); }
  // When it goes on, at `now` or later.
  double Begins(double now) const { return done() ? kNoTime : std::max(now, pieces_[at_].ready); }
  double Ends(double now, double rate) const { return now + left_ / rate; }
  void Start(double now) {
    if (!started_) pieces_[at_].start = now;
    started_ = true;
  }
  void Run(double from, double to, double rate) {
    if (to < Ends(from, rate)) {
      left_ -= (to - from) * rate;
      return;
    }
    pieces_[at_++].end = to;
    if (!done()) left_ = pieces_[at_].work;
    started_ = false;
  }
  size_t at() const { return at_; }

 private:
  std::vector<Piece>& pieces_;
  size_t at_ = 0;
  double left_ = 0;
  bool started_ = false;
};

}  // namespace

void Stretch(Editor& edit, const Overlapped& overlapped, double rate) {
  if (overlapped.collectives.empty() || rate >= 1) return;
  const Graph& graph = edit.graph();
  const uint16_t step = graph.task(overlapped.collectives[0].task).step;
  std::vector<Piece> compute, exchange;
  std::vector<size_t> behind;  // by collective: how many kernels end before it begins
  Instant origin = Instant::Min();
  for (TaskId t = graph.lane(overlapped.stream).first; t.valid(); t = graph.task(t).lane_next) {
    const Task& task = graph.task(t);
    if (task.step != step || task.removed || !IsGpu(task.kind)) continue;
    if (compute.empty()) origin = task.recorded_start;
    compute.push_back({.task = t,
                       .ready = static_cast<double>((task.recorded_start - origin).ns),
                       .work = static_cast<double>(task.duration.ns)});
    for (const Overlapped::Collective& c : overlapped.collectives) {
      if (c.behind == t) behind.push_back(compute.size());
    }
  }
  if (behind.size() != overlapped.collectives.size()) return;
  for (const Overlapped::Collective& c : overlapped.collectives) {
    exchange.push_back(
        {.task = c.task, .work = static_cast<double>(graph.task(c.task).duration.ns)});
  }
  Side left(compute), right(exchange);
  double now = compute.empty() ? 0 : compute[0].ready;
  while (!left.done() || !right.done()) {
    const bool gated = !right.done() && left.at() < behind[right.at()];
    const double a = left.Begins(now), b = gated ? kNoTime : right.Begins(now);
    const double begin = std::min(a, b);
    now = begin;
    const bool runs_left = a <= now, runs_right = b <= now;
    const double speed = runs_left && runs_right ? rate : 1;
    double until = kNoTime;
    if (runs_left) left.Start(now), until = std::min(until, left.Ends(now, speed));
    if (runs_right) right.Start(now), until = std::min(until, right.Ends(now, speed));
    if (!runs_left && a > now) until = std::min(until, a);
    if (runs_left) left.Run(now, until, speed);
    if (runs_right) right.Run(now, until, speed);
    now = until;
  }
  for (const std::vector<Piece>* side : {&compute, &exchange}) {
    for (const Piece& p : *side) {
      const Duration took = Duration::FromDouble(p.end - p.start);
      const Duration was = graph.task(p.task).duration;
      if (took <= was) continue;
      edit.SetDuration(p.task, took);
      if (side == &exchange) edit.SetTransfer(p.task, took);
    }
  }
}

}  // namespace daydream
