#include "transforms/edits/capture.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "graph/call_kind.h"
#include "graph/order.h"
#include "graph/scopes.h"
#include "transforms/analysis/capture_memory.h"
#include "transforms/analysis/gpu_waits.h"
#include "transforms/analysis/step_changes.h"

namespace daydream {
namespace {

// Places that a warning names before it sums up the others.
constexpr size_t kMostSites = 3;
// Modules nest a handful deep; the bound keeps hostile input from long chains.
constexpr std::string_view kOneLaunch = "launches become one graph launch";

// Launches that one graph launch can stand for: nothing between them has to happen on the host.
struct Segment {
  std::vector<TaskId> launches;  // calls, in program order
  std::vector<TaskId> between;   // host work from the first launch to the last, both excluded
  std::vector<TaskId> around;    // host work before the first and after the last
  std::vector<TaskId> waits;     // between them; they come after the graph and wait for all of it
};

enum class Border : uint8_t { kNone, kWait, kAllocation, kHostCopy, kCollective, kGraph, kLoader };

struct BorderText {
  std::string_view what;   // what splits the step
  std::string_view moves;  // what becomes of it when the whole step is captured
};
BorderText Describe(Border b) {
  switch (b) {
    case Border::kWait:
      return {"calls that wait for the GPU",
              "have to move behind the graph (if the host decides by their values, there is none)"};
    case Border::kAllocation:
      return {"allocations", "have to come out of the graph's pool"};
    case Border::kHostCopy:
      return {"copies between host and GPU", "have to use the same pinned memory in every step"};
    case Border::kCollective:
      return {"collectives", "have to be captured by all ranks"};
    case Border::kGraph:
      return {"graph launches that are there already", ""};
    case Border::kLoader:
      return {"fetches of a batch", ""};
    case Border::kNone:
      break;
  }
  return {};
}

class Capture {
 public:
  Capture(const CaptureOptions& options, Editor& edit)
      : options_(options), edit_(edit), loader_(edit.graph()), uses_(edit.graph()) {}

  absl::Status Run() {
    FindSegments();
    segment_of_.assign(graph().size(), 0);
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (WorthCapturing(segments_[i])) {
        Replace(segments_[i], static_cast<uint32_t>(i + 1));
        ++graphs_;
      }
      if (options_.ahead_of_time) Schedule(segments_[i]);
    }
    ShortenHandOffs();
    LaunchNodes();
    CloseGaps();
    MoveWaits();
    Tell();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  double HostCost(const Segment& s) const {
    size_t nodes = 0;
    for (TaskId call : s.launches) nodes += edit_.LaunchedBy(call).size();
    return options_.launch + options_.per_node * static_cast<double>(nodes);
  }

  bool WorthCapturing(const Segment& s) const {
    if (s.launches.size() < 2) return false;
    if (options_.min_launches > 0) return s.launches.size() >= options_.min_launches;
    Duration now;
    for (TaskId call : s.launches) now += graph().task(call).duration;
    if (!options_.ahead_of_time) {
      for (TaskId call : std::span(s.launches).first(s.launches.size() - 1)) {
        now += graph().task(call).gap;
      }
      for (TaskId t : s.between) now += graph().task(t).duration + graph().task(t).gap;
    }
    return Duration::FromDouble(HostCost(s)) < now;
  }

  bool IsAllocation(TaskId t) const {
    std::string_view name = graph().TaskName(t);
    return uses_.UseOf(t) == WaitUse::kFree || Contains(name, "Malloc") || Contains(name, "Free") ||
           Contains(name, "HostAlloc");
  }

  Border BorderAt(TaskId t) {
    const Task& task = graph().task(t);
    if (loader_.Around(task.scope).valid()) return Border::kLoader;
    if (IsHost(task.kind) && task.kind != TaskKind::kHost && IsAllocation(t)) {
      return Border::kAllocation;
    }
    // Copies out of pinned memory do not wait.
    if (uses_.UseOf(t) == WaitUse::kToDevice) return Border::kHostCopy;
    if (uses_.UseOf(t) != WaitUse::kNone) return Border::kWait;
    if (task.kind != TaskKind::kCall) return Border::kNone;
    std::string_view name = graph().Name(task.name);
    if (Contains(name, "Synchronize")) return Border::kWait;
    if (ClassifyCall(name) == CallKind::kGraphLaunch) return Border::kGraph;
    for (TaskId launched : edit_.LaunchedBy(t)) {
      if (graph().task(launched).kind == TaskKind::kCollective) return Border::kCollective;
      const CopyDetail* copy = graph().Copy(launched);
      if (graph().task(launched).kind == TaskKind::kMemcpy && copy != nullptr &&
          (copy->from != Memory::kDevice || copy->to != Memory::kDevice)) {
        return Border::kHostCopy;
      }
    }
    return Border::kNone;
  }

  // A border that can leave the step when its author takes the trouble.
  bool CanMove(Border b, TaskId t) const {
    if (b == Border::kAllocation && options_.ahead_of_time) return true;
    if (options_.scope != CaptureScope::kStep) return false;
    if (b == Border::kWait) {
      WaitUse use = uses_.UseOf(t);
      return use != WaitUse::kSteers && use != WaitUse::kRanks && edit_.LaunchedBy(t).empty();
    }
    return b == Border::kAllocation || b == Border::kHostCopy || b == Border::kCollective;
  }

  // Host tasks of threads that launch work, in an order in which they can run: what they depend on
  // comes first, then goes by the recorded time. Copies of a pass have the times of their
  // originals, so that times alone would mix the threads of several passes.
  std::vector<TaskId> ProgramOrder() const {
    std::vector<bool> launches(graph().lanes().size(), false);
    for (const Edge& e : graph().edges()) {
      if (e.rule == Rule::kLaunch) launches[graph().task(e.from).lane.index()] = true;
    }
    std::vector<TaskId> order = OrderInTime(graph());
    std::erase_if(order, [&](TaskId t) {
      const Task& task = graph().task(t);
      return task.removed || !IsHost(task.kind) || !launches[task.lane.index()];
    });
    return order;
  }

  // What is captured together besides being adjacent: with kLayer a layer and a direction.
  using Group = std::pair<LayerId, Phase>;
  Group GroupOf(TaskId call) const {
    if (options_.scope != CaptureScope::kLayer) return {};
    return GroupOfWork(edit_.LaunchedBy(call).front());
  }
  Group GroupOfWork(TaskId t) const {
    const Task& task = graph().task(t);
    if (task.phase == Phase::kOptimizer || task.phase == Phase::kData) return {};
    std::vector<LayerId> path;  // from the layer outwards
    for (LayerId l : LayersAround(graph(), task.layer)) path.push_back(l);
    if (path.empty()) return {};
    size_t depth = std::min(path.size(), static_cast<size_t>(options_.depth));
    return {path[path.size() - depth], task.phase};
  }

  void Close() {
    if (!open_.launches.empty()) {
      open_.around.insert(open_.around.end(), since_.begin(), since_.end());
      segments_.push_back(std::move(open_));
      open_ = {};
      since_.clear();
    }
    // Host work before the next launch belongs to the next segment.
    waits_since_.clear();
  }

  void FindSegments() {
    uint16_t step = 0;
    Group group;
    for (TaskId t : ProgramOrder()) {
      const Task& task = graph().task(t);
      if (task.step != step) {
        Close();
        since_.clear(), seen_.clear();
        step = task.step;
      }
      const Border border = BorderAt(t);
      const bool moves = border != Border::kNone && CanMove(border, t);
      const bool launch = task.kind == TaskKind::kCall && !edit_.LaunchedBy(t).empty();
      if (border != Border::kNone) {
        MarkOpsAround(t);
        seen_.push_back({border, t, moves});
        if (!moves) {
          Close();
          continue;
        }
      }
      if (!launch) {
        (moves && border == Border::kWait ? waits_since_ : since_).push_back(t);
        continue;
      }
      if (launch_in_ == step + 1) TellBorders();
      launch_in_ = step + 1;
      seen_.clear();
      if (Group now = GroupOf(t); now != group) {
        Close();
        group = now;
      }
      if (options_.scope == CaptureScope::kLayer && !group.first.valid()) {
        since_.clear();
        continue;
      }
      std::vector<TaskId>& goes = open_.launches.empty() ? open_.around : open_.between;
      goes.insert(goes.end(), since_.begin(), since_.end());
      since_.clear();
      if (!open_.launches.empty()) {
        open_.waits.insert(open_.waits.end(), waits_since_.begin(), waits_since_.end());
      }
      waits_since_.clear();
      open_.launches.push_back(t);
    }
    Close();
  }

  // Ops that a border is part of keep their host time.
  void MarkOpsAround(TaskId t) {
    ops_of_borders_.resize(graph().tables().scopes.size(), false);
    for (ScopeId s : ScopesAround(graph(), graph().task(t).scope)) {
      if (ops_of_borders_[s.index()]) break;
      ops_of_borders_[s.index()] = true;
    }
  }

  // Only what lies between two launches of a step is in the way.
  void TellBorders() {
    ScopeId fetch;
    for (const SeenBorder& b : seen_) {
      const Task& task = graph().task(b.task);
      // The waiting part of a call belongs to the call.
      bool part = task.kind == TaskKind::kWait && task.lane_prev.valid() &&
                  graph().task(task.lane_prev).name == task.name;
      std::string site = SiteOf(graph(), b.task);
      bool counts = !part;
      if (b.border == Border::kLoader) {
        ScopeId around = loader_.Around(task.scope);
        counts = around != fetch;
        fetch = around;
        site = graph().Name(graph().tables().scopes[around.index()].name);
      } else if (b.border == Border::kWait && uses_.UseOf(b.task) != WaitUse::kNone) {
        site += fmt::format(", {}", WaitUseName(uses_.UseOf(b.task)));
      }
      if (part) continue;
      borders_[{b.border, b.moves}].Add(graph(), b.task, std::move(site),
                                        RecordedHostTime(graph(), b.task), counts);
    }
  }

  void Replace(const Segment& s, uint32_t id) {
    TaskId graph_launch = s.launches.front();
    size_t nodes = 0;
    for (TaskId call : s.launches) {
      std::span<const TaskId> launched = edit_.LaunchedBy(call);
      segment_of_[call.index()] = id;
      for (TaskId t : launched) {
        if (IsHost(graph().task(t).kind)) continue;
        nodes_.push_back({t, graph_launch, id});
        ++nodes;
      }
    }
    for (TaskId t : s.between) segment_of_[t.index()] = id;
    for (TaskId t : s.waits) moved_waits_.push_back({t, id});
    captured_ += nodes;
    edit_.BeginCause(kOneLaunch);
    edit_.SetDuration(graph_launch, Duration::FromDouble(HostCost(s)));
    edit_.SetGap(graph_launch, {});
    edit_.Rename(graph_launch, "cudaGraphLaunch");
    Duration last_gap = graph().task(s.launches.back()).gap;
    edit_.Remove(std::span(s.launches).subspan(1));
    // The host still does what follows the last launch.
    edit_.SetGap(s.launches.back(), last_gap);
    edit_.BeginCause("host work between launches is not repeated");
    edit_.Remove(s.between);
  }

  // What the framework does around launches was done before the first step. The program's own time
  // stays where a border is near: what it does there cannot be told from the framework's.
  void Schedule(const Segment& s) {
    edit_.BeginCause("the framework's work was done ahead of time");
    if (segment_of_[s.launches.front().index()] == 0) {
      edit_.Remove(s.between);
      for (TaskId call : std::span(s.launches).first(s.launches.size() - 1)) {
        if (graph().task(call).gap > Duration{}) edit_.SetGap(call, {});
      }
    }
    const std::vector<Scope>& scopes = graph().tables().scopes;
    for (TaskId t : s.around) {
      const Task& task = graph().task(t);
      bool border_op =
          task.scope.index() < ops_of_borders_.size() && ops_of_borders_[task.scope.index()];
      bool framework = task.kind == TaskKind::kHost && task.scope.index() < scopes.size() &&
                       scopes[task.scope.index()].kind == EventKind::kOp && !border_op;
      if (task.kind != TaskKind::kHost && IsAllocation(t)) {
        const Duration gap = task.gap;
        edit_.Remove({&t, 1});
        if (gap > Duration{}) edit_.SetGap(t, gap);
      } else if (framework && task.duration > Duration{}) {
        edit_.SetDuration(t, {});
      }
    }
  }

  void ShortenHandOffs() {
    for (size_t i = 0; i < graph().edges().size(); ++i) {
      const Edge& e = graph().edges()[i];
      if (e.rule == Rule::kHandOff && segment_of_[e.from.index()] != 0 &&
          segment_of_[e.from.index()] == segment_of_[e.to.index()]) {
        edit_.SetLag(i, std::min(e.lag, Duration{}));
      }
    }
  }

  // After all graphs are known: every look at what a call launches would be indexed anew.
  void LaunchNodes() {
    edit_.BeginCause("host work between launches is not repeated");
    for (const Node& n : nodes_) {
      segment_of_[n.task.index()] = n.segment;
      edit_.Relaunch(n.task, n.launch);
    }
  }

  void CloseGaps() {
    edit_.BeginCause("dead time between kernels shrinks");
    for (const Node& n : nodes_) {
      const Task& task = graph().task(n.task);
      Duration gap = Duration::FromDouble(options_.gap);
      if (task.lane_next.valid() && segment_of_[task.lane_next.index()] == n.segment &&
          task.gap > gap) {
        edit_.SetGap(n.task, gap);
      }
    }
  }

  // A wait that was inside a graph comes after it: it waits for the last node of each stream that
  // it waited for.
  void MoveWaits() {
    if (moved_waits_.empty()) return;
    edit_.BeginCause("waits come after the graph");
    std::map<std::pair<uint32_t, LaneId>, TaskId> last;
    for (const GraphLane& lane : graph().lanes()) {
      for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
        const Task& task = graph().task(t);
        if (IsGpu(task.kind) && segment_of_[t.index()] != 0) {
          last[{segment_of_[t.index()], task.lane}] = t;
        }
      }
    }
    std::map<TaskId, uint32_t> segment(moved_waits_.begin(), moved_waits_.end());
    std::vector<Edge> moved;
    edit_.DropEdges([&](const Graph& g, const Edge& e) {
      auto wait = segment.find(e.to);
      if (e.rule != Rule::kHostWait || wait == segment.end()) return false;
      auto node = last.find({wait->second, g.task(e.from).lane});
      if (node == last.end() || node->second == e.from) return false;
      moved.push_back(e);
      moved.back().from = node->second;
      return true;
    });
    for (const Edge& e : moved) {
      edit_.AddEdge(e.from, e.to, e.lag, e.rule, e.from_anchor, e.to_anchor);
    }
  }

  void TellChanges() {
    std::vector<TaskId> nodes;
    for (const Node& n : nodes_) nodes.push_back(n.task);
    const StepChanges changes = FindStepChanges(graph(), nodes);
    if (changes.kernels == 0) return;
    std::string which(graph().TaskName(changes.first));
    if (graph().task(changes.first).scope.valid()) which += " by " + SiteOf(graph(), changes.first);
    edit_.changes().warnings.push_back(
        fmt::format("up to {} kernels of a step are launched with other shapes or not at all in "
                    "other steps, first {}: what changes its shapes cannot be replayed",
                    changes.kernels, which));
  }

  void TellMemory() {
    auto& memory = edit_.changes().memory;
    if (options_.scope != CaptureScope::kLayer) {
      memory.push_back(InputBuffersOfSteps(graph()));
      return;
    }
    std::vector<LayerWork> work;
    for (const Node& n : nodes_) work.push_back({n.task, GroupOfWork(n.task).first});
    memory.push_back(InputBuffersOfLayers(graph(), work));
  }

  void Tell() {
    const size_t steps = std::max<size_t>(graph().steps().size(), 1);
    auto& changes = edit_.changes();
    if (graphs_ == 0) {
      changes.notes.push_back(
          options_.min_launches > 0
              ? fmt::format("no {} launches of a step follow each other without a border "
                            "(min_nodes)",
                            options_.min_launches)
              : "no launches of a step follow each other for which a graph launch is cheaper");
    } else {
      changes.notes.push_back(fmt::format("{} launches become {} graph launches in {} steps",
                                          captured_, graphs_, steps));
      TellMemory();
      TellChanges();
    }
    for (const auto& [border, sites] : borders_) {
      std::string places;
      for (const std::string& line : sites.Lines(graph(), kMostSites)) {
        places += (places.empty() ? "" : "; ") + line;
      }
      const BorderText text = Describe(border.first);
      changes.warnings.push_back(
          fmt::format("{} {}: {}", text.what,
                      border.second ? text.moves : "split the step into several graphs", places));
    }
  }

  struct Node {
    TaskId task, launch;
    uint32_t segment;
  };
  struct SeenBorder {
    Border border;
    TaskId task;
    bool moves;
  };

  const CaptureOptions& options_;
  Editor& edit_;
  LoaderScopes loader_;
  GpuWaits uses_;
  Segment open_;
  std::vector<TaskId> since_, waits_since_;  // host work and waits after the last launch
  std::vector<SeenBorder> seen_;             // since the last launch
  int launch_in_ = 0;                        // step + 1 of the last launch
  std::vector<Segment> segments_;
  std::vector<uint32_t> segment_of_;  // by task; 0 = none
  std::vector<Node> nodes_;
  std::vector<std::pair<TaskId, uint32_t>> moved_waits_;
  std::vector<bool> ops_of_borders_;  // by scope
  std::map<std::pair<Border, bool>, SiteList> borders_;
  size_t graphs_ = 0, captured_ = 0;
};

}  // namespace

absl::Status CaptureLaunches(const CaptureOptions& options, Editor& edit) {
  return Capture(options, edit).Run();
}

}  // namespace daydream
