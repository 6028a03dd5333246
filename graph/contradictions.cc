// Recorded times that contradict one another (clock skew, damaged files) can make the rules build a
// cycle. It is cut at its weakest edge, counted and reported; what no longer has a reason to start
// keeps its recorded instant.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/order.h"

namespace daydream {
namespace {

// A trace with more contradictions than this is not worth repairing.
constexpr size_t kMostCuts = 200;

// How sure a rule is of its edges: guesses are cut before recorded facts.
int Strength(Rule rule) {
  switch (rule) {
    case Rule::kQueue:
      return 0;
    case Rule::kEventWait:
      return 1;
    case Rule::kHandOff:
      return 2;
    case Rule::kHostWait:
      return 3;
    case Rule::kLaunch:
      return 4;
    default:
      return 5;
  }
}

constexpr uint32_t kLaneOrder = 0xffffffff;  // in place of an edge: next on a lane of fixed order

// Edges out of each task, by its index: begin[task] to begin[task + 1].
struct OutEdges {
  explicit OutEdges(const Graph& g) : begin(g.size() + 1), edges(g.edges().size()) {
    for (const Edge& e : g.edges()) ++begin[e.from.index() + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
    for (uint32_t i = 0; i < g.edges().size(); ++i) edges[next[g.edges()[i].from.index()]++] = i;
  }
  std::vector<uint32_t> begin, edges;
};

// One depth-first search over all tasks. Where it closes a cycle, it cuts the weakest edge of it
// and goes on from there: each cut costs as much again as what lies behind the edge, not a new
// search.
class CycleCutter {
 public:
  explicit CycleCutter(const Graph& graph)
      : graph_(graph),
        out_(graph),
        dropped_(graph.edges().size()),
        state_(graph.size()),
        depth_(graph.size()) {}

  // Indices of the edges to drop, at most `most`; more are needed where it stops at `most`, or
  // where a cycle has no edge that could be dropped.
  std::vector<uint32_t> Cut(size_t most) {
    for (size_t i = 0; i < graph_.size() && Search(TaskId(i), most); ++i) {
    }
    return std::move(cut_);
  }

 private:
  enum class State : uint8_t { kNew, kOnPath, kDone };
  struct Frame {
    TaskId task;
    uint32_t next;                // position in out_.edges
    uint32_t taken = kLaneOrder;  // the edge to the next frame
    bool lane_taken = false;
  };

  void Enter(TaskId task) {
    state_[task.index()] = State::kOnPath;
    depth_[task.index()] = static_cast<uint32_t>(path_.size());
    path_.push_back({.task = task, .next = out_.begin[task.index()]});
  }

  // False: there is a cycle that it may not cut.
  bool Search(TaskId root, size_t most) {
    if (state_[root.index()] == State::kNew) Enter(root);
    while (!path_.empty()) {
      Frame& at = path_.back();
      const TaskId to = Next(at);
      if (!to.valid()) {
        state_[at.task.index()] = State::kDone;
        path_.pop_back();
      } else if (state_[to.index()] == State::kNew) {
        Enter(to);
      } else if (state_[to.index()] == State::kOnPath && !CutFrom(depth_[to.index()], most)) {
        return false;
      }
    }
    return true;
  }

  // The next task behind `at`, None behind the last.
  TaskId Next(Frame& at) const {
    while (at.next < out_.begin[at.task.index() + 1]) {
      at.taken = out_.edges[at.next++];
      if (!dropped_[at.taken]) return graph_.edges()[at.taken].to;
    }
    if (at.lane_taken) return {};
    at.lane_taken = true;
    at.taken = kLaneOrder;
    const Task& task = graph_.task(at.task);
    return graph_.lane(task.lane).order == LaneOrder::kFixed ? task.lane_next : TaskId();
  }

  // Cuts the cycle that is the end of the path from `first` on.
  bool CutFrom(size_t first, size_t most) {
    size_t weakest = path_.size();
    auto strength = [&](size_t i) { return Strength(graph_.edges()[path_[i].taken].rule); };
    for (size_t i = first; i < path_.size(); ++i) {
      if (path_[i].taken == kLaneOrder) continue;
      if (weakest == path_.size() || strength(i) < strength(weakest)) weakest = i;
    }
    if (weakest == path_.size() || cut_.size() == most) return false;
    cut_.push_back(path_[weakest].taken);
    dropped_[path_[weakest].taken] = true;
    // Later roots find these again: all before this root are done.
    for (; path_.size() > weakest + 1; path_.pop_back()) {
      state_[path_.back().task.index()] = State::kNew;
    }
    return true;
  }

  const Graph& graph_;
  OutEdges out_;
  std::vector<bool> dropped_;  // by edge
  std::vector<State> state_;
  std::vector<uint32_t> depth_;  // on the path, by task
  std::vector<Frame> path_;
  std::vector<uint32_t> cut_;
};

// What the import had to repair: "24,192 repeated correlation ids".
std::string Repairs(const Trace& trace) {
  std::string text;
  for (const ImportCount& c : trace.provenance.counts) {
    if (c.repair) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", c.count, c.what);
  }
  return text;
}

absl::Status TooMany(const Trace& trace, size_t dropped) {
  const std::string repairs = Repairs(trace);
  return MakeStatus(
      absl::StatusCode::kDataLoss,
      {.code = "E0304",
       .what = "the recorded times contradict one another",
       .where = fmt::format("{}: {} dependencies dropped, and there are more",
                            trace.provenance.source, dropped),
       .why =
           fmt::format("the file is damaged{}{}, or clocks of host and GPU do not belong together",
                       repairs.empty() ? "" : ": it has ", repairs),
       .fix = "record again"});
}

}  // namespace

absl::Status CutContradictions(Builder& b) {
  auto order = EvaluationOrder(b.graph, b.next_on_lane);
  if (order.ok()) {
    b.graph.TellLikelyOrder(*std::move(order));
    return absl::OkStatus();
  }
  std::vector<uint32_t> cuts = CycleCutter(b.graph).Cut(kMostCuts);
  std::vector<Edge>& edges = b.graph.mutable_edges();
  for (uint32_t i : cuts) {
    Task& task = b.graph.mutable_task(edges[i].to);
    if (edges[i].to_anchor == Anchor::kStart) {
      task.earliest = std::max(task.earliest, task.recorded_start);
    }
  }
  std::sort(cuts.begin(), cuts.end(), std::greater<>());
  for (uint32_t i : cuts) edges.erase(edges.begin() + i);
  order = EvaluationOrder(b.graph, b.next_on_lane);
  if (!order.ok()) return TooMany(b.trace, cuts.size());
  b.graph.TellLikelyOrder(*std::move(order));
  b.report.warnings.push_back(fmt::format(
      "{} dependencies contradict one another in their times and were dropped", cuts.size()));
  return absl::OkStatus();
}

}  // namespace daydream
