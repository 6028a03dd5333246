#include "transforms/edits/capture.h"

#include <algorithm>
#include <map>
#include <set>

#include "transforms/analysis/capture_memory.h"
#include "transforms/analysis/step_changes.h"
#include "transforms/edits/capturable.h"
#include "transforms/edits/capture_segments.h"
#include "transforms/edits/inserted_kernel.h"

namespace daydream {
namespace {

// Places that a warning names before it sums up the others.
constexpr size_t kMostSites = 3;
// Modules nest a handful deep; the bound keeps hostile input from long chains.
constexpr std::string_view kOneLaunch = "launches become one graph launch";

struct BorderText {
  std::string_view what;   // what splits the step
  std::string_view moves;  // what becomes of it when the whole step is captured
};
BorderText Describe(CaptureBorder b) {
  switch (b) {
    case CaptureBorder::kWait:
      return {"calls that wait for the GPU",
              "have to move behind the graph (if the host decides by their values, there is none)"};
    case CaptureBorder::kAllocation:
      return {"allocations", "have to come out of the graph's pool"};
    case CaptureBorder::kHostCopy:
      return {"copies between host and GPU", "have to use the same pinned memory in every step"};
    case CaptureBorder::kCollective:
      return {"collectives", "have to be captured by all ranks"};
    case CaptureBorder::kGraph:
      return {"graph launches that are there already", ""};
    case CaptureBorder::kLoader:
      return {"fetches of a batch", ""};
    case CaptureBorder::kNone:
      break;
  }
  return {};
}

class Capture {
 public:
  using OptionsOf = CaptureOptions (*)(const Params& params);
  Capture(OptionsOf of, const Params& params, Editor& edit)
      : options_(of(params)),
        at_ends_(edit.AtEnds([of](const EndView& at) { return of(at.params()); })),
        edit_(edit),
        found_(FindCaptureSegments(options_, edit)),
        capturable_(edit.graph()) {}

  absl::Status Run() {
    const bool adds = capturable_.adds();
    edit_.NeedEditsWhere([adds](const Task& t, Duration duration, Duration gap) {
      const bool longer = duration != t.duration, apart = gap != t.gap;
      if (!IsHost(t.kind)) return apart || (longer && adds && t.phase == Phase::kOptimizer);
      // What the host takes decides where a graph is worth it, which is looked at below; and what
      // takes no time is left alone.
      return IsNone(duration) != IsNone(t.duration) || IsNone(gap) != IsNone(t.gap);
    });
    segment_of_.assign(graph().size(), 0);
    for (size_t i = 0; i < found_->segments.size(); ++i) {
      const CaptureSegment& segment = found_->segments[i];
      const size_t nodes = NodesOf(segment);
      const Duration now = HostTimeOf(segment);
      const bool worth = WorthCapturing(segment, nodes, now, options_);
      const std::vector<Duration> there = HostTimesAtEnds(segment, now);
      for (size_t e = 0; e < at_ends_.size(); ++e) {
        if (WorthCapturing(segment, nodes, there[e], at_ends_[e]) != worth) edit_.NeedEditsAt(e);
      }
      if (worth) {
        Replace(segment, static_cast<uint32_t>(i + 1), nodes);
        steps_.insert(graph().task(segment.launches.front()).step);
        ++graphs_;
      }
      if (options_.ahead_of_time) Schedule(segment);
    }
    ShortenHandOffs();
    LaunchNodes();
    FindLeastGap();
    CloseGaps();
    MoveWaits();
    AddCapturable();
    if (edit_.keeps_notes()) Tell();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  size_t NodesOf(const CaptureSegment& s) const {
    size_t nodes = 0;
    for (TaskId call : s.launches) {
      for (TaskId t : edit_.LaunchedBy(call)) nodes += 1 + capturable_.Before(t);
    }
    return nodes;
  }

  // Valid until the next call.
  template <class Of>
  std::span<const Duration> ForEnds(const Of& of) {
    for_ends_.clear();
    for (const CaptureOptions& there : at_ends_) for_ends_.push_back(of(there));
    return for_ends_;
  }

  static Duration HostCost(const CaptureOptions& options, size_t nodes) {
    return Duration::FromDouble(options.launch + options.per_node * static_cast<double>(nodes));
  }

  static bool IsNone(Duration d) { return d == Duration{}; }

  // `now`: HostTimeOf(s).
  static bool WorthCapturing(const CaptureSegment& s, size_t nodes, Duration now,
                             const CaptureOptions& options) {
    if (s.launches.size() < 2) return false;
    if (options.min_launches > 0) return s.launches.size() >= options.min_launches;
    return HostCost(options, nodes) < now;
  }

  // The host work that one graph launch stands for.
  Duration HostTimeOf(const CaptureSegment& s) const {
    Duration now;
    for (TaskId call : s.launches) now += graph().task(call).duration;
    if (!options_.ahead_of_time) {
      for (TaskId call : std::span(s.launches).first(s.launches.size() - 1)) {
        now += graph().task(call).gap;
      }
      for (TaskId t : s.between) now += graph().task(t).duration + graph().task(t).gap;
    }
    return now;
  }

  std::vector<Duration> HostTimesAtEnds(const CaptureSegment& s, Duration now) const {
    std::vector<Duration> times(at_ends_.size(), now);
    for (TaskId call : s.launches) {
      edit_.AddLongerAtEnds(call, !options_.ahead_of_time && call != s.launches.back(), times);
    }
    if (options_.ahead_of_time) return times;
    for (TaskId t : s.between) edit_.AddLongerAtEnds(t, /*with_gap=*/true, times);
    return times;
  }

  void Replace(const CaptureSegment& s, uint32_t id, size_t all_nodes) {
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
    edit_.SetDuration(graph_launch, HostCost(options_, all_nodes));
    edit_.SetAtEnds(graph_launch, ForEnds([&](const CaptureOptions& there) {
                      return HostCost(there, all_nodes);
                    }));
    edit_.SetGap(graph_launch, {});
    edit_.Rename(graph_launch, "cudaGraphLaunch");
    const TaskId last = s.launches.back();
    edit_.Remove(std::span(s.launches.begin() + 1, s.launches.end() - 1));
    edit_.BeginCause("host work between launches is not repeated");
    edit_.Remove(s.between);
    // The host still does what follows the last launch.
    edit_.BeginCause(kOneLaunch);
    edit_.RemoveButGap({&last, 1});
  }

  // What the framework does around launches was done before the first step. The program's own time
  // stays where a border is near: what it does there cannot be told from the framework's.
  void Schedule(const CaptureSegment& s) {
    edit_.BeginCause("the framework's work was done ahead of time");
    if (segment_of_[s.launches.front().index()] == 0) {
      edit_.Remove(s.between);
      for (TaskId call : std::span(s.launches).first(s.launches.size() - 1)) {
        if (graph().task(call).gap > Duration{}) edit_.SetGap(call, {});
      }
    }
    const std::vector<Scope>& scopes = graph().tables().scopes;
    const std::vector<bool>& borders = found_->ops_of_borders;
    std::vector<TaskId> allocations;
    for (TaskId t : s.around) {
      const Task& task = graph().task(t);
      bool border_op = task.scope.index() < borders.size() && borders[task.scope.index()];
      bool framework = task.kind == TaskKind::kHost && task.scope.index() < scopes.size() &&
                       scopes[task.scope.index()].kind == EventKind::kOp && !border_op;
      if (found_->allocations.contains(t)) {
        allocations.push_back(t);
      } else if (framework && task.duration > Duration{}) {
        edit_.SetDuration(t, {});
      }
    }
    edit_.RemoveButGap(allocations);
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

  static Duration GapOf(const CaptureOptions& options) { return Duration::FromDouble(options.gap); }

  // Also of tasks that were inserted with the gap of the options.
  void SetGapsAtEnds(TaskId t, Duration most) {
    edit_.SetGapAtEnds(
        t, ForEnds([&](const CaptureOptions& there) { return std::min(most, GapOf(there)); }));
  }

  void FindLeastGap() {
    least_gap_ = GapOf(options_);
    for (const CaptureOptions& there : at_ends_) least_gap_ = std::min(least_gap_, GapOf(there));
  }

  void CloseGaps() {
    edit_.BeginCause("dead time between kernels shrinks");
    for (const Node& n : nodes_) {
      const Task& task = graph().task(n.task);
      if (!task.lane_next.valid() || segment_of_[task.lane_next.index()] != n.segment) continue;
      const Duration now = task.gap, gap = GapOf(options_);
      if (now > gap) edit_.SetGap(n.task, gap);
      if (now > least_gap_) SetGapsAtEnds(n.task, now);
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

  void AddCapturable() {
    const NameId name = edit_.graph().AddName("capturable_step");
    edit_.BeginCause("the optimizer counts its steps on the GPU");
    for (const Node& n : nodes_) {
      if (capturable_.Before(n.task) > 0) steps_of_added_.insert(graph().task(n.task).step);
      for (size_t more = capturable_.Before(n.task); more > 0; --more, ++added_) {
        const TaskId step = InsertKernel(
            edit_,
            {.at = n.task, .name = name, .duration = capturable_.time(), .gap = GapOf(options_)},
            {});
        SetGapsAtEnds(step, Duration::Max());
      }
    }
  }

  void TellCapturable() {
    if (added_ == 0) return;
    edit_.changes().conditions.push_back(fmt::format(
        "{} needs capturable=True in a graph: {} more kernels for each parameter, {} a step, "
        "counted here; fused=True needs none of them",
        capturable_.optimizer(), kCapturableKernels, added_ / steps_of_added_.size()));
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
    for (const Node& n : nodes_)
      work.push_back({n.task, GroupOfWork(graph(), n.task, options_.depth).first});
    memory.push_back(InputBuffersOfLayers(graph(), work));
  }

  void Tell() {
    const size_t steps = std::max<size_t>(steps_.size(), 1);
    auto& changes = edit_.changes();
    if (graphs_ == 0) {
      changes.notes.push_back(
          options_.min_launches > 0
              ? fmt::format("no {} launches of a step follow each other without a border "
                            "(min_nodes)",
                            options_.min_launches)
              : "no launches of a step follow each other for which a graph launch is cheaper");
    } else {
      changes.notes.push_back(fmt::format("{} launches become {} graph launch{} in {} step{}",
                                          captured_, graphs_, graphs_ == 1 ? "" : "es", steps,
                                          steps == 1 ? "" : "s"));
      // Each has to be captured, with inputs of its own.
      changes.places = (graphs_ + steps - 1) / steps;
      TellMemory();
      TellChanges();
      TellCapturable();
    }
    for (const auto& [border, sites] : found_->borders) {
      std::string places;
      for (const std::string& line : sites.Lines(graph(), kMostSites)) {
        places += (places.empty() ? "" : "; ") + line;
      }
      const BorderText text = Describe(border.first);
      changes.conditions.push_back(
          fmt::format("{} {}: {}", text.what,
                      border.second ? text.moves : "split the step into several graphs", places));
    }
  }

  struct Node {
    TaskId task, launch;
    uint32_t segment;
  };

  const CaptureOptions options_;
  const std::vector<CaptureOptions> at_ends_;  // of open parameters
  std::vector<Duration> for_ends_;
  Editor& edit_;
  const std::shared_ptr<const CaptureSegments> found_;
  const CapturableLoop capturable_;
  std::vector<uint32_t> segment_of_;  // by task; 0 = none
  std::vector<Node> nodes_;
  std::vector<std::pair<TaskId, uint32_t>> moved_waits_;
  std::set<uint16_t> steps_;  // with a graph
  std::set<uint16_t> steps_of_added_;
  size_t graphs_ = 0, captured_ = 0, added_ = 0;
  Duration least_gap_;  // of all ends
};

}  // namespace

absl::Status CaptureLaunches(CaptureOptions (*of)(const Params& params), const Params& params,
                             Editor& edit) {
  return Capture(of, params, edit).Run();
}

}  // namespace daydream
