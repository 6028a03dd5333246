#include <algorithm>
#include <map>

#include "transforms/loader.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

constexpr ParamSpec kParams[] = {
    {.name = "launch",
     .unit = Unit::kDuration,
     .fallback = 9000,
     .low = 2500,
     .high = 28000,
     .min = 0,
     .max = 1e9,
     .help = "host time of a graph launch without its nodes",
     .source = "design estimate, not measured, between 2.5 us (NVIDIA Technical Blog, Constant "
               "Time Launch for Straight-Line CUDA Graphs) and 13 to 28 us (least and median of 70 "
               "small graph launches on an A100 under the profiler)"},
    {.name = "per_node",
     .unit = Unit::kDuration,
     .fallback = 200,
     .low = 1,
     .high = 1400,
     .min = 0,
     .max = 1e6,
     .help = "host time of a graph launch for each node",
     .source = "NVIDIA Technical Blog, Constant Time Launch for Straight-Line CUDA Graphs: 0.2 us "
               "before CUDA 12.6, 1 ns since; traced first launches took 1.2 to 1.4 us"},
    {.name = "gap",
     .unit = Unit::kDuration,
     .fallback = 500,
     .low = 0,
     .high = 1000,
     .min = 0,
     .max = 1e6,
     .help = "dead time between dependent kernels of a graph",
     .source = "NVIDIA Technical Blog, Getting Started with CUDA Graphs: 3.4 us for each kernel "
               "of 2.9 us; traced graphs on A100 and MI300X: median 0, at most 2 us"},
    {.name = "min_nodes",
     .unit = Unit::kNone,
     .fallback = 50,
     .low = 20,
     .high = 100,
     .min = 2,
     .max = 1e6,
     .help = "shorter runs of launches between two borders stay as they are",
     .source = "design estimate, not measured: models and layers are captured, not the few "
               "launches between two reads of a result"},
};

// Launches that one graph launch can stand for: nothing between them has to happen on the host.
struct Segment {
  std::vector<TaskId> launches;  // calls, in program order
  std::vector<TaskId> between;   // host work from the first launch to the last, both excluded
};

enum class Border : uint8_t { kNone, kWait, kAllocation, kHostCopy, kCollective, kGraph, kLoader };

std::string_view Describe(Border b) {
  switch (b) {
    case Border::kWait:
      return "calls that wait for the GPU";
    case Border::kAllocation:
      return "allocations";
    case Border::kHostCopy:
      return "copies between host and GPU";
    case Border::kCollective:
      return "collectives";
    case Border::kGraph:
      return "graph launches that are there already";
    case Border::kLoader:
      return "fetches of a batch";
    case Border::kNone:
      break;
  }
  return "";
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class Graphs {
 public:
  Graphs(const Params& params, Editor& edit)
      : params_(params), edit_(edit), loader_(edit.graph()) {}

  absl::Status Run() {
    FindWaits();
    FindSegments();
    size_t graphs = 0, nodes = 0;
    for (const Segment& s : segments_) {
      size_t n = 0;
      for (TaskId call : s.launches) n += edit_.LaunchedBy(call).size();
      if (WorthCapturing(s)) ++graphs, nodes += n;
    }
    if (graphs == 0) {
      edit_.changes().notes.push_back(
          fmt::format("no {} launches of a step follow each other without a border (min_nodes)",
                      params_["min_nodes"]));
      return absl::OkStatus();
    }
    segment_of_.assign(graph().size(), 0);
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (WorthCapturing(segments_[i])) Capture(segments_[i], static_cast<uint32_t>(i + 1));
    }
    ShortenHandOffs();
    CloseGaps();
    Tell(graphs, nodes);
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  bool WorthCapturing(const Segment& s) const {
    return static_cast<double>(s.launches.size()) >= params_["min_nodes"];
  }

  void FindWaits() {
    waits_.assign(graph().size(), false);
    for (const Edge& e : graph().edges()) {
      if (e.rule == Rule::kHostWait) waits_[e.to.index()] = true;
    }
  }

  Border BorderAt(TaskId t) const {
    const Task& task = graph().task(t);
    if (loader_.Around(task.scope).valid()) return Border::kLoader;
    if (waits_[t.index()]) return Border::kWait;
    if (task.kind != TaskKind::kCall) return Border::kNone;
    std::string_view name = graph().Name(task.name);
    if (Contains(name, "Synchronize")) return Border::kWait;
    if (Contains(name, "Malloc") || Contains(name, "Free") || Contains(name, "HostAlloc")) {
      return Border::kAllocation;
    }
    if (Contains(name, "GraphLaunch")) return Border::kGraph;
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

  // Host tasks of threads that launch work, in the order in which they ran.
  std::vector<TaskId> ProgramOrder() const {
    std::vector<bool> launches(graph().lanes().size(), false);
    for (const Edge& e : graph().edges()) {
      if (e.rule == Rule::kLaunch) launches[graph().task(e.from).lane.index()] = true;
    }
    std::vector<TaskId> order;
    for (size_t i = 0; i < graph().size(); ++i) {
      const Task& task = graph().task(TaskId(i));
      if (!task.removed && IsHost(task.kind) && launches[task.lane.index()]) {
        order.push_back(TaskId(i));
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
      const Task &x = graph().task(a), &y = graph().task(b);
      return std::pair(x.step, x.recorded_start) < std::pair(y.step, y.recorded_start);
    });
    return order;
  }

  void FindSegments() {
    Segment open;
    std::vector<TaskId> since;  // host work after the last launch
    uint16_t step = 0;
    Border seen = Border::kNone;  // last border since the last launch
    auto close = [&] {
      if (!open.launches.empty()) segments_.push_back(std::move(open));
      open = {};
      since.clear();
    };
    for (TaskId t : ProgramOrder()) {
      const Task& task = graph().task(t);
      if (task.step != step) close(), step = task.step, seen = Border::kNone;
      Border border = BorderAt(t);
      if (border != Border::kNone) {
        if (!open.launches.empty()) seen = border, seen_name_ = task.name;
        close();
        continue;
      }
      bool launch = task.kind == TaskKind::kCall && !edit_.LaunchedBy(t).empty();
      if (!launch) {
        if (!open.launches.empty()) since.push_back(t);
        continue;
      }
      if (seen != Border::kNone) ++borders_[{seen, seen_name_}];
      seen = Border::kNone;
      open.between.insert(open.between.end(), since.begin(), since.end());
      since.clear();
      open.launches.push_back(t);
    }
    close();
  }

  void Capture(const Segment& s, uint32_t id) {
    TaskId graph_launch = s.launches.front();
    size_t nodes = 0;
    for (TaskId call : s.launches) {
      std::span<const TaskId> launched = edit_.LaunchedBy(call);
      nodes += launched.size();
      segment_of_[call.index()] = id;
      for (TaskId t : launched) nodes_.push_back({t, graph_launch, id});
    }
    for (TaskId t : s.between) segment_of_[t.index()] = id;
    edit_.BeginCause("launches become one graph launch");
    edit_.SetDuration(
        graph_launch,
        Duration::FromDouble(params_["launch"] + params_["per_node"] * static_cast<double>(nodes)));
    edit_.SetGap(graph_launch, {});
    edit_.graph().mutable_task(graph_launch).name = edit_.graph().AddName("cudaGraphLaunch");
    Duration last_gap = graph().task(s.launches.back()).gap;
    edit_.Remove(std::span(s.launches).subspan(1));
    // The host still does what follows the last launch.
    edit_.SetGap(s.launches.back(), last_gap);
    edit_.BeginCause("host work between launches is not repeated");
    edit_.Remove(s.between);
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

  void CloseGaps() {
    edit_.BeginCause("dead time between kernels shrinks");
    for (const Node& n : nodes_) segment_of_[n.task.index()] = n.segment;
    for (const Node& n : nodes_) {
      edit_.Relaunch(n.task, n.launch);
      const Task& task = graph().task(n.task);
      Duration gap = Duration::FromDouble(params_["gap"]);
      if (task.lane_next.valid() && segment_of_[task.lane_next.index()] == n.segment &&
          task.gap > gap) {
        edit_.SetGap(n.task, gap);
      }
    }
  }

  void Tell(size_t graphs, size_t nodes) {
    size_t steps = std::max<size_t>(graph().steps().size(), 1);
    edit_.changes().notes.push_back(
        fmt::format("{} launches become {} graph launches in {} steps", nodes, graphs, steps));
    for (const auto& [border, count] : borders_) {
      edit_.changes().warnings.push_back(
          fmt::format("{} {} split the step into several graphs ({})", count,
                      Describe(border.first), graph().Name(border.second)));
    }
  }

  struct Node {
    TaskId task, launch;
    uint32_t segment;
  };

  const Params& params_;
  Editor& edit_;
  LoaderScopes loader_;
  std::vector<bool> waits_;  // by task: it waits for the GPU
  std::vector<Segment> segments_;
  std::vector<uint32_t> segment_of_;  // by task; 0 = none
  std::vector<Node> nodes_;
  std::map<std::pair<Border, NameId>, size_t> borders_;
  NameId seen_name_;
};

absl::Status Run(const Params& params, Editor& edit) { return Graphs(params, edit).Run(); }

}  // namespace

constinit const Transform kGraphs = {
    .name = "graphs",
    .summary = "CUDA graphs replay the launches of a step",
    .params = kParams,
    .apply = &Run,
    .model =
        "Launches of a step that follow each other without a border become one graph "
        "launch: its first call costs `launch` and `per_node` for each node, the other "
        "calls and the host work between them are gone, and dead time between its kernels "
        "is at most `gap`. Borders stay where they are: calls that wait for the GPU, "
        "allocations, copies between host and GPU, collectives, graph launches that are "
        "there already, and fetches of a batch.",
    .ignores =
        "Capture itself, memory that graphs hold on to, and whether the program can be "
        "captured at all: shapes that change from step to step, or host code that reads "
        "a value, forbid it.",
    .sources = "CUDA C++ Programming Guide, CUDA Graphs; Nimble (NeurIPS'20)",
};

}  // namespace daydream
