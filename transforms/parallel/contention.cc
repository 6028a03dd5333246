#include "transforms/parallel/contention.h"

#include <algorithm>
#include <map>
#include <vector>

namespace daydream {
namespace {

// Work on one side: ready at, and how much at full rate.
struct Piece {
  TaskId task;
  double ready = 0, work = 0;
  size_t behind = 0;  // so many pieces of the other side end before it begins
  double start = 0, end = 0;
};

constexpr double kNoTime = 1e300;

// Where one side is: pieces run one after the other, none before it is ready.
class Side {
 public:
  explicit Side(std::vector<Piece>& pieces) : pieces_(pieces) {
    if (!pieces.empty()) left_ = pieces[0].work;
  }
  bool done() const { return at_ >= pieces_.size(); }
  // When it goes on, at `now` or later; never while it waits for `other`.
  double Begins(double now, const Side& other) const {
    if (done() || other.at_ < pieces_[at_].behind) return kNoTime;
    return std::max(now, pieces_[at_].ready);
  }
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

 private:
  std::vector<Piece>& pieces_;
  size_t at_ = 0;
  double left_ = 0;
  bool started_ = false;
};

// Both sides from the first ready piece on.
void Play(std::vector<Piece>& compute, std::vector<Piece>& exchange, double rate) {
  Side left(compute), right(exchange);
  double now = compute.empty() ? 0 : compute[0].ready;
  while (!left.done() || !right.done()) {
    const double a = left.Begins(now, right), b = right.Begins(now, left);
    now = std::min(a, b);
    if (now == kNoTime) return;
    const bool runs_left = a <= now, runs_right = b <= now;
    const double speed = runs_left && runs_right ? rate : 1;
    double until = kNoTime;
    if (runs_left) left.Start(now), until = std::min(until, left.Ends(now, speed));
    if (runs_right) right.Start(now), until = std::min(until, right.Ends(now, speed));
    if (!runs_left) until = std::min(until, a);
    if (!runs_right) until = std::min(until, b);
    if (runs_left) left.Run(now, until, speed);
    if (runs_right) right.Run(now, until, speed);
    now = until;
  }
}

// The sides of one step.
struct Sides {
  std::vector<Piece> compute, exchange;
  Instant origin = Instant::Min();
};

class Sharing {
 public:
  Sharing(Editor& edit, LaneId compute, const std::vector<LaneId>& exchange) : edit_(edit) {
    sides_.resize(std::max<size_t>(graph().steps().size(), 1));
    place_.assign(graph().size(), 0);
    Collect(
        {compute}, [](Sides & s) -> auto& { return s.compute; });
    Collect(
        exchange, [](Sides & s) -> auto& { return s.exchange; });
    for (const Edge& e : graph().edges()) {
      const Task &from = graph().task(e.from), &to = graph().task(e.to);
      if (e.rule != Rule::kEventWait || from.step != to.step || place_[e.from.index()] == 0 ||
          place_[e.to.index()] == 0 || (from.lane == compute) == (to.lane == compute)) {
        continue;
      }
      Sides& s = sides_[to.step];
      Piece& p = (to.lane == compute ? s.compute : s.exchange)[place_[e.to.index()] - 1];
      p.behind = std::max(p.behind, place_[e.from.index()]);
    }
  }

  void Run(double rate) {
    for (Sides& s : sides_) {
      if (s.exchange.empty() || s.compute.empty()) continue;
      Play(s.compute, s.exchange, rate);
      for (const std::vector<Piece>* side : {&s.compute, &s.exchange}) {
        for (const Piece& p : *side) Lengthen(p);
      }
    }
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // What comes first of several streams, each in its order.
  TaskId TakeNext(std::vector<TaskId>& next) const {
    TaskId* first = nullptr;
    for (TaskId& t : next) {
      if (!t.valid()) continue;
      const bool earlier =
          first == nullptr || graph().task(t).recorded_start < graph().task(*first).recorded_start;
      if (earlier) first = &t;
    }
    if (first == nullptr) return {};
    const TaskId taken = *first;
    *first = graph().task(taken).lane_next;
    return taken;
  }

  template <class Which>
  void Collect(const std::vector<LaneId>& lanes, Which which) {
    std::vector<TaskId> next;
    for (LaneId lane : lanes) next.push_back(graph().lane(lane).first);
    for (TaskId t = TakeNext(next); t.valid(); t = TakeNext(next)) {
      const Task& task = graph().task(t);
      if (task.removed || !IsGpu(task.kind) || task.step >= sides_.size()) continue;
      Sides& s = sides_[task.step];
      if (s.origin == Instant::Min()) s.origin = task.recorded_start;
      std::vector<Piece>& side = which(s);
      side.push_back({.task = t, .work = static_cast<double>(task.duration.ns)});
      place_[t.index()] = side.size();
      if (task.kind == TaskKind::kCollective) continue;  // begins when what it waits for ends
      side.back().ready = static_cast<double>((task.recorded_start - s.origin).ns);
    }
  }

  void Lengthen(const Piece& p) {
    const Duration took = Duration::FromDouble(p.end - p.start);
    const Duration was = graph().task(p.task).duration;
    if (took <= was) return;
    edit_.model_changes().alone.emplace(p.task, was);
    edit_.SetDuration(p.task, took);
    if (graph().task(p.task).kind == TaskKind::kCollective) edit_.SetTransfer(p.task, took);
  }

  Editor& edit_;
  std::vector<Sides> sides_;
  std::vector<size_t> place_;  // by task: on its side, from 1 on
};

}  // namespace

LaneId ComputeStream(const Graph& graph) {
  std::map<LaneId, Duration> busy;
  for (const Task& task : graph.tasks()) {
    if (task.kind == TaskKind::kKernel && !task.removed) busy[task.lane] += task.duration;
  }
  const auto most = std::max_element(
      busy.begin(), busy.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == busy.end() ? LaneId() : most->first;
}

double RateTogether(const Graph& graph, const Fabric& fabric) {
  if (fabric.overlap > 0) return std::min(1.0, fabric.overlap);
  const std::vector<Device>& devices = graph.tables().devices;
  const int32_t all = devices.empty() ? 0 : devices.front().multiprocessors;
  if (all <= 0 || fabric.sms_per_collective <= 0) return 1;
  return std::max(0.1, 1 - static_cast<double>(fabric.sms_per_collective) / all);
}

void ShareGpu(Editor& edit, LaneId compute, const std::vector<LaneId>& exchange, double rate) {
  if (rate < 1 && compute.valid() && !exchange.empty()) Sharing(edit, compute, exchange).Run(rate);
}

bool UnshareGpu(Editor& edit) {
  if (edit.model_changes().alone.empty()) return false;
  for (const auto& [t, alone] : edit.model_changes().alone) {
    const Task& task = edit.graph().task(t);
    if (task.removed) continue;
    if (task.kind == TaskKind::kCollective) edit.SetTransfer(t, alone);
    edit.SetDuration(t, alone);
  }
  edit.model_changes().alone.clear();
  return true;
}

void ShareAgain(Editor& edit) {
  const Graph& graph = edit.graph();
  const Fabric* fabric = graph.model_changes().fabric.get();
  if (fabric == nullptr) return;
  std::vector<LaneId> streams;
  for (const Task& task : graph.tasks()) {
    const bool added = task.event == Id<void>::kNoneValue && !task.removed;
    if (task.kind != TaskKind::kCollective || !added) continue;
    if (std::find(streams.begin(), streams.end(), task.lane) == streams.end()) {
      streams.push_back(task.lane);
    }
  }
  ShareGpu(edit, ComputeStream(graph), streams, RateTogether(graph, *fabric));
}

}  // namespace daydream
