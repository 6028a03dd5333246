#include "report/questions/held_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/median.h"
#include "report/stalls.h"

namespace daydream {
namespace {

// As of stalls.
constexpr int64_t kTimesOfWait = 20;
constexpr Duration kLeastHeld = Duration::Ms(1);
constexpr size_t kEnoughWaits = 4;

Instant EndAsRecorded(const Task& t) { return t.recorded_start + t.duration; }

class WaitSplitter {
 public:
  explicit WaitSplitter(const Graph& graph) : graph_(graph) {}

  HeldWaits Run() {
    Collect();
    std::vector<Duration> all;
    std::map<Kind, std::vector<Duration>> alike;
    for (const auto& [task, wait] : waits_) {
      all.push_back(wait.tail);
      alike[KindOf(task, wait)].push_back(wait.tail);
    }
    if (all.empty()) return {};
    const Duration usual_of_rare = Ranked(all, all.size() / 4);
    std::map<Kind, Duration> usual_of;
    for (auto& [kind, tails] : alike) {
      if (const size_t n = tails.size(); n >= kEnoughWaits) {
        usual_of[kind] = Ranked(std::move(tails), (n - 1) / 2);
      }
    }
    std::map<TaskId, TaskId> behind;
    for (const auto& [task, wait] : waits_) {
      const auto often = usual_of.find(KindOf(task, wait));
      const Duration usual =
          often == usual_of.end() ? std::min(usual_of_rare, wait.tail) : often->second;
      if (!IsFar(wait.tail, usual)) continue;
      behind[task] = AddCall(task, wait, usual);
      out_.calls.push_back(behind[task]);
    }
    for (Edge& e : behind.empty() ? std::span<Edge>() : std::span(Split().mutable_edges())) {
      const auto moved = e.from_anchor == Anchor::kEnd ? behind.find(e.from) : behind.end();
      if (moved != behind.end()) e.from = moved->second;
    }
    SubmitLate();
    return std::move(out_);
  }

 private:
  // What is awaited last, as recorded.
  struct Wait {
    size_t edge = 0;
    Duration tail;
    Instant arrives;
  };
  // Copies to the GPU return before they are done, copies from it later.
  using Kind = std::tuple<NameId, Memory, Memory>;

  static bool IsFar(Duration time, Duration usual) {
    const Duration size = std::max(usual, -usual);
    return time >= size * kTimesOfWait && time - usual >= kLeastHeld;
  }

  void Collect() {
    for (size_t i = 0; i < graph_.edges().size(); ++i) {
      const Edge& e = graph_.edges()[i];
      if (e.rule != Rule::kHostWait || e.to_anchor != Anchor::kEnd) continue;
      if (!IsGpu(graph_.task(e.from).kind)) continue;
      const Instant arrives = EndAsRecorded(graph_.task(e.from)) + e.lag;
      const auto [known, first] = waits_.try_emplace(e.to, Wait{i, e.lag, arrives});
      if (!first && known->second.arrives < arrives) known->second = {i, e.lag, arrives};
    }
  }

  Kind KindOf(TaskId task, const Wait& wait) const {
    const CopyDetail* copy = graph_.Copy(graph_.edges()[wait.edge].from);
    if (copy == nullptr) return {graph_.task(task).name, {}, {}};
    return {graph_.task(task).name, copy->from, copy->to};
  }

  Graph& Split() {
    if (!out_.graph.has_value()) out_.graph = graph_;
    return *out_.graph;
  }

  TaskId AddCall(TaskId id, const Wait& wait, Duration usual) {
    const Duration held = wait.tail - usual;
    Split().mutable_edges()[wait.edge].lag = usual;
    Task& t = Split().mutable_task(id);
    t.duration = std::min(t.duration, std::max(usual, {}));
    const Task call{.recorded_start = wait.arrives - held,
                    .duration = held,
                    .gap = std::exchange(t.gap, {}),
                    .name = t.name,
                    .lane = t.lane,
                    .scope = t.scope,
                    .layer = t.layer,
                    .step = t.step,
                    .kind = TaskKind::kCall,
                    .phase = t.phase};
    return Split().InsertAfter(id, call);
  }

  // Delays before copies whose calls wait for them.
  void SubmitLate() {
    std::map<TaskId, TaskId> call_of;  // by delay
    for (const Edge& e : graph_.edges()) {
      if (e.rule == Rule::kLaunch && IsUnexplained(graph_.task(e.to))) call_of[e.to] = e.from;
    }
    for (const auto& [delay, call] : call_of) {
      const TaskId wait = graph_.task(call).lane_next, copy = graph_.task(delay).lane_next;
      const auto waits = waits_.find(wait);
      const bool own = waits != waits_.end() && graph_.edges()[waits->second.edge].from == copy;
      const Duration time = graph_.task(delay).duration;
      if (!own || !IsFar(time, graph_.task(call).duration)) continue;
      Task& c = Split().mutable_task(call);
      c.duration = graph_.task(copy).recorded_start - c.recorded_start;
      Split().mutable_task(delay).duration = {};
      out_.calls.push_back(call);
      ++out_.delays;
      out_.delay_time += time;
    }
  }

  const Graph& graph_;
  std::map<TaskId, Wait> waits_;
  HeldWaits out_;
};

}  // namespace

HeldWaits SplitHeldWaits(const Graph& graph) { return WaitSplitter(graph).Run(); }

}  // namespace daydream
