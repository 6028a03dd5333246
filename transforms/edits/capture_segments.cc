#include "transforms/edits/capture_segments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "base/text.h"
#include "graph/call_kind.h"
#include "graph/facts.h"
#include "graph/fetch.h"
#include "graph/order.h"
#include "graph/scopes.h"
#include "transforms/analysis/loader.h"

namespace daydream {
namespace {

// What ProgramOrder() found.
struct HostOrder {
  std::vector<TaskId> tasks;
};

// Tasks of one thread mostly follow one another, those of another do not: chosen.
constexpr size_t kTasksFetched = 8;

class SegmentSearch {
 public:
  SegmentSearch(const CaptureOptions& options, const Editor& edit)
      : options_(options),
        edit_(edit),
        loader_(edit.graph()),
        uses_(edit.graph()),
        quiet_(edit.graph().lanes().size()) {}

  CaptureSegments Run() {
    FindSegments();
    KeepWhatGoesOn();
    return std::move(found_);
  }

 private:
  struct SeenBorder {
    CaptureBorder border;
    TaskId task;
    bool moves;
  };

  const Graph& graph() const { return edit_.graph(); }

  // What the name of a call tells; a trace has few names, and many calls of each in turn.
  struct CallName {
    bool allocates, waits, launches_graph;
  };
  const CallName& NameOf(const Task& call) {
    if (last_told_ != nullptr && call.name == last_name_) return *last_told_;
    const auto [told, fresh] = names_.try_emplace(call.name);
    if (fresh) {
      const std::string_view name = graph().Name(call.name);
      told->second = {.allocates = Contains(name, "Malloc") || Contains(name, "Free") ||
                                   Contains(name, "HostAlloc"),
                      .waits = Contains(name, "Synchronize"),
                      .launches_graph = ClassifyCall(name) == CallKind::kGraphLaunch};
    }
    last_name_ = call.name, last_told_ = &told->second;
    return told->second;
  }

  // `of_call`: what it launches, where it is a call.
  CaptureBorder BorderAt(TaskId t, std::span<const TaskId> of_call) {
    const Task& task = graph().task(t);
    if (loader_.Around(task.scope).valid()) return CaptureBorder::kLoader;
    const bool call = IsHost(task.kind) && task.kind != TaskKind::kHost;
    if (call && (uses_.UseOf(t) == WaitUse::kFree || NameOf(task).allocates)) {
      return CaptureBorder::kAllocation;
    }
    // Copies out of pinned memory do not wait.
    if (uses_.UseOf(t) == WaitUse::kToDevice) return CaptureBorder::kHostCopy;
    if (uses_.UseOf(t) != WaitUse::kNone) return CaptureBorder::kWait;
    if (task.kind != TaskKind::kCall) return CaptureBorder::kNone;
    if (NameOf(task).waits) return CaptureBorder::kWait;
    if (NameOf(task).launches_graph) return CaptureBorder::kGraph;
    for (TaskId launched : of_call) {
      if (graph().task(launched).kind == TaskKind::kCollective) return CaptureBorder::kCollective;
      const CopyDetail* copy = graph().Copy(launched);
      if (graph().task(launched).kind == TaskKind::kMemcpy && copy != nullptr &&
          (copy->from != Memory::kDevice || copy->to != Memory::kDevice)) {
        return CaptureBorder::kHostCopy;
      }
    }
    return CaptureBorder::kNone;
  }

  // A border that can leave the step when its author takes the trouble.
  bool CanMove(CaptureBorder b, TaskId t) const {
    if (b == CaptureBorder::kAllocation && options_.ahead_of_time) return true;
    if (options_.scope != CaptureScope::kStep) return false;
    if (b == CaptureBorder::kWait) {
      WaitUse use = uses_.UseOf(t);
      return use != WaitUse::kSteers && use != WaitUse::kRanks && edit_.LaunchedBy(t).empty();
    }
    return b == CaptureBorder::kAllocation || b == CaptureBorder::kHostCopy ||
           b == CaptureBorder::kCollective;
  }

  // Host tasks of threads that launch work, in an order in which they can run: what they depend on
  // comes first, then goes by the recorded time. Copies of a pass have the times of their
  // originals, so that times alone would mix the threads of several passes.
  std::vector<TaskId> ProgramOrder() const {
    std::vector<bool> launches(graph().lanes().size(), false);
    for (const Edge& e : graph().edges()) {
      if (e.rule == Rule::kLaunch) launches[graph().task(e.from).lane.index()] = true;
    }
    return OrderInTime(graph(), [&](const Task& task) {
      return !task.removed && IsHost(task.kind) && launches[task.lane.index()];
    });
  }

  // What is captured together besides being adjacent: with kLayer a layer and a direction.
  CaptureGroup GroupOf(TaskId call) const {
    if (options_.scope != CaptureScope::kLayer) return {};
    return GroupOfWork(graph(), edit_.LaunchedBy(call).front(), options_.depth);
  }
  void Close() {
    if (!open_.launches.empty()) {
      open_.around.insert(open_.around.end(), since_.begin(), since_.end());
      found_.segments.push_back(std::move(open_));
      open_ = {};
      since_.clear();
    }
    // Host work before the next launch belongs to the next segment.
    waits_since_.clear();
  }

  void FindSegments() {
    uint16_t step = 0;
    CaptureGroup group;
    const auto order = FactOf<HostOrder>(graph(), [&] { return HostOrder{ProgramOrder()}; });
    for (size_t i = 0; i < order->tasks.size(); ++i) {
      if (i + kTasksFetched < order->tasks.size())
        FetchToRead(graph().task(order->tasks[i + kTasksFetched]));
      const TaskId t = order->tasks[i];
      const Task& task = graph().task(t);
      if (task.step != step) {
        Close();
        since_.clear(), seen_.clear();
        step = task.step;
      }
      const bool call = task.kind == TaskKind::kCall;
      const auto launched = call ? edit_.LaunchedBy(t) : std::span<const TaskId>();
      const CaptureBorder border = BorderAt(t, launched);
      const bool moves = border != CaptureBorder::kNone && CanMove(border, t);
      const bool launch = !launched.empty();
      if (border != CaptureBorder::kNone) {
        if (border == CaptureBorder::kAllocation) found_.allocations.insert(t);
        MarkOpsAround(t);
        seen_.push_back({border, t, moves});
        if (border == CaptureBorder::kHostCopy) KeepWhatMayMakeIt(t);
        if (!moves) {
          Close();
          continue;
        }
      }
      if (!launch) {
        if (moves && border == CaptureBorder::kWait) {
          waits_since_.push_back(t);
        } else {
          since_.push_back(t);
          QuietOf(t).work.push_back(t);
        }
        continue;
      }
      if (launch_in_ == step + 1) TellBorders();
      launch_in_ = step + 1;
      seen_.clear();
      Quiet& quiet = quiet_[task.lane.index()];
      quiet.after = task.recorded_start, quiet.step = step;
      quiet.work.clear();
      if (CaptureGroup now = GroupOf(t); now != group) {
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

  // What a thread did after its last launch and its last copy, in this step.
  struct Quiet {
    Instant after = Instant::Min();  // that launch
    uint16_t step = 0;
    std::vector<TaskId> work;
  };
  Quiet& QuietOf(TaskId t) {
    const Task& task = graph().task(t);
    Quiet& quiet = quiet_[task.lane.index()];
    if (std::exchange(quiet.step, task.step) != task.step) quiet.work.clear();
    return quiet;
  }

  // Ops of a thread since its last launch, which launched nothing, may have made what it copies to
  // the GPU: a batch that is drawn, stacked or converted on the host. They have to go on.
  void KeepWhatMayMakeIt(TaskId copy) {
    for (TaskId launched : edit_.LaunchedBy(copy)) {
      const CopyDetail* d = graph().Copy(launched);
      if (d != nullptr && d->from == Memory::kDevice) return;
    }
    Quiet& quiet = QuietOf(copy);
    for (TaskId t : quiet.work) {
      const ScopeId op = OutermostOp(graph(), graph().task(t).scope);
      if (op.valid() && ScopeAt(graph(), op).begin > quiet.after) goes_on_.insert(t);
    }
    quiet.work.clear();  // what is known of it holds for later copies, too
  }

  void KeepWhatGoesOn() {
    if (goes_on_.empty()) return;
    for (CaptureSegment& segment : found_.segments) {
      for (std::vector<TaskId>* work : {&segment.between, &segment.around}) {
        std::erase_if(*work, [&](TaskId t) { return goes_on_.contains(t); });
      }
    }
  }

  // Ops that a border is part of keep their host time.
  void MarkOpsAround(TaskId t) {
    found_.ops_of_borders.resize(graph().tables().scopes.size(), false);
    for (ScopeId s : ScopesAround(graph(), graph().task(t).scope)) {
      if (found_.ops_of_borders[s.index()]) break;
      found_.ops_of_borders[s.index()] = true;
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
      if (b.border == CaptureBorder::kLoader) {
        ScopeId around = loader_.Around(task.scope);
        counts = around != fetch;
        fetch = around;
        site = graph().Name(graph().tables().scopes[around.index()].name);
      } else if (b.border == CaptureBorder::kWait && uses_.UseOf(b.task) != WaitUse::kNone) {
        site += fmt::format(", {}", WaitUseName(uses_.UseOf(b.task)));
      }
      if (part) continue;
      found_.borders[{b.border, b.moves}].Add(graph(), b.task, std::move(site),
                                              RecordedHostTime(graph(), b.task), counts);
    }
  }

  const CaptureOptions& options_;
  const Editor& edit_;
  LoaderScopes loader_;
  GpuWaits uses_;
  absl::flat_hash_map<NameId, CallName> names_;
  NameId last_name_;  // that was asked for
  const CallName* last_told_ = nullptr;
  CaptureSegment open_;
  std::vector<TaskId> since_, waits_since_;  // host work and waits after the last launch
  std::vector<Quiet> quiet_;                 // by lane
  absl::flat_hash_set<TaskId> goes_on_;      // what may make something that is copied to the GPU
  std::vector<SeenBorder> seen_;             // since the last launch
  int launch_in_ = 0;                        // step + 1 of the last launch
  CaptureSegments found_;
};

}  // namespace

CaptureGroup GroupOfWork(const Graph& graph, TaskId t, int depth) {
  const Task& task = graph.task(t);
  if (task.phase == Phase::kOptimizer || task.phase == Phase::kData) return {};
  std::vector<LayerId> path;  // from the layer outwards
  for (LayerId l : LayersAround(graph, task.layer)) path.push_back(l);
  if (path.empty()) return {};
  const size_t at = std::min(path.size(), static_cast<size_t>(depth));
  return {path[path.size() - at], task.phase};
}

std::shared_ptr<const CaptureSegments> FindCaptureSegments(const CaptureOptions& options,
                                                           const Editor& edit) {
  const uint64_t asked = uint64_t{static_cast<uint32_t>(options.depth)} << 8 |
                         static_cast<uint64_t>(options.scope) << 1 |
                         static_cast<uint64_t>(options.ahead_of_time);
  return FactOf<CaptureSegments>(
      edit.graph(), [&] { return SegmentSearch(options, edit).Run(); }, asked);
}

}  // namespace daydream
