// checkpointing: copies the forward work of a segment to just before its backward work.
#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "transforms/analysis/checkpoint_segments.h"
#include "transforms/core/select.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kCheckpointingParams[] = {
    {.name = "layers",
     .unit = Unit::kText,
     .text_fallback = "auto",
     .help = "layers to run again, as a regular expression over their names; auto: blocks of "
             "layers where they have some, else stretches of sqrt(n) of n layers",
     .source = "chosen by the user"},
    {.name = "every",
     .unit = Unit::kNone,
     .fallback = 0,
     .max = 1e6,
     .help = "blocks (or layers) between two kept results; 0 = one block, or sqrt(n) layers",
     .source = "Chen et al. 2016, section 4.1",
     .whole = true},
};

// Ops that a program calls in its forward pass and that no formula of a derivative calls.
constexpr std::string_view kForwardOnly[] = {
    "aten::conv1d",     "aten::conv2d",     "aten::conv3d",
    "aten::linear",     "aten::batch_norm", "aten::layer_norm",
    "aten::embedding",  "aten::dropout",    "aten::scaled_dot_product_attention",
    "aten::max_pool2d", "aten::relu",       "aten::gelu",
    "aten::silu"};
// The backward of torch.utils.checkpoint with use_reentrant=True.
constexpr std::string_view kReentrant = "CheckpointFunctionBackward";

// Kernels of the backward pass that belong to forward ops: the program checkpoints already.
// `example`: set to such an op.
size_t ComputedAgain(const Graph& graph, std::string_view* example) {
  const std::vector<Scope>& scopes = graph.tables().scopes;
  std::vector<bool> again(scopes.size());  // by scope: it or one around it is such an op
  for (size_t i = 0; i < scopes.size(); ++i) {
    const std::string_view name = graph.Name(scopes[i].name);
    // Parents are earlier rows: scopes are made in order of their begin.
    const bool inside = scopes[i].parent.index() < i && again[scopes[i].parent.index()];
    again[i] =
        inside || name == kReentrant ||
        std::find(std::begin(kForwardOnly), std::end(kForwardOnly), name) != std::end(kForwardOnly);
  }
  size_t kernels = 0;
  for (const Task& task : graph.tasks()) {
    if (task.removed || task.kind != TaskKind::kKernel || task.phase != Phase::kBackward) continue;
    if (task.scope.index() >= scopes.size() || !again[task.scope.index()]) continue;
    if (kernels++ == 0) *example = graph.Name(scopes[task.scope.index()].name);
  }
  return kernels;
}

class Checkpointing {
 public:
  Checkpointing(const Params& params, Editor& edit)
      : params_(params), edit_(edit), ops_(ForwardOps(edit.graph())) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(CheckTrained("checkpointing", graph(), ops_));
    if (ToldThatItRuns()) return absl::OkStatus();
    std::vector<bool> wanted;
    SegmentRules rules{.every = static_cast<size_t>(params_["every"])};
    if (params_.text("layers") != "auto") {
      DD_ASSIGN_OR_RETURN(Selector selector, Selector::Key("layer", params_.text("layers")));
      wanted.assign(graph().size(), false);
      for (TaskId t : selector.Select(graph())) wanted[t.index()] = true;
      rules.wanted = &wanted;
    }
    const std::vector<Segment> segments = SegmentsOf(graph(), ops_, rules);
    if (segments.empty()) {
      edit_.changes().notes.push_back("no layer that has backward work is selected");
      return absl::OkStatus();
    }
    IndexLaunches();
    edit_.BeginCause("the forward pass runs again");
    for (const Segment& s : segments) RunAgain(s);
    MoveHandOffs();
    TellCheckpointing(segments);
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // Unless layers are named, a program that checkpoints is left alone.
  bool ToldThatItRuns() {
    std::string_view example;
    const size_t kernels = ComputedAgain(graph(), &example);
    if (kernels == 0) return false;
    std::string text = fmt::format(
        "the program computes activations again already: {} kernels of its backward pass are of "
        "forward ops, such as {}",
        kernels, example);
    if (params_.text("layers") != "auto") {
      edit_.changes().warnings.push_back(std::move(text));
      return false;
    }
    edit_.changes().notes.push_back(std::move(text));
    return true;
  }

  void IndexLaunches() {
    for (const Edge& e : graph().edges()) {
      if (e.rule == Rule::kLaunch) launch_.try_emplace(e.to, e);
      if (e.rule == Rule::kHostWait) waits_.insert(e.to);
    }
    for (size_t i = 0; i < graph().size(); ++i) {
      if (const TaskId call = edit_.LaunchOf(TaskId(i)); call.valid()) calls_.insert(call);
    }
  }

  void Launch(TaskId call, TaskId kernel, const Edge& like) {
    edit_.AddEdge(call, kernel, like.lag, Rule::kLaunch, like.from_anchor, like.to_anchor);
    calls_.insert(call);
  }

  // Forward kernels of the segment, in the order of their stream.
  std::vector<TaskId> KernelsOf(const Segment& s) const {
    std::vector<TaskId> kernels;
    for (size_t i = s.begin; i < s.end; ++i) {
      for (TaskId t = ops_[i].first; t.valid(); t = graph().task(t).lane_next) {
        const Task& task = graph().task(t);
        const bool own = task.kind == TaskKind::kKernel || task.kind == TaskKind::kMemset;
        if (own && !task.removed && task.phase == Phase::kForward) kernels.push_back(t);
        if (t == ops_[i].last) break;
      }
    }
    return kernels;
  }

  bool IsForwardHost(TaskId t) const {
    const Task& task = graph().task(t);
    const bool work = task.kind == TaskKind::kHost || task.kind == TaskKind::kCall;
    return work && !task.removed && task.phase == Phase::kForward && !waits_.contains(t);
  }

  // Host work of the forward pass from the segment's first launch, with the op around it, to the
  // last. Empty where one call launches more than this, such as a CUDA graph.
  std::vector<TaskId> HostWorkOf(const std::vector<TaskId>& kernels, TaskId backward_call) const {
    const TaskId first = edit_.LaunchOf(kernels.front()), last = edit_.LaunchOf(kernels.back());
    if (!first.valid() || !last.valid() || first == backward_call) return {};
    if (graph().task(first).lane != graph().task(last).lane) return {};
    TaskId begin = first;
    const LayerId layer = graph().task(first).layer;
    for (TaskId t = graph().task(first).lane_prev; t.valid(); t = graph().task(t).lane_prev) {
      if (!IsForwardHost(t) || graph().task(t).layer != layer || !layer.valid()) break;
      if (calls_.contains(t)) break;
      begin = t;
    }
    absl::flat_hash_set<TaskId> launches;
    for (TaskId t : kernels) launches.insert(edit_.LaunchOf(t));
    std::vector<TaskId> work;
    for (TaskId t = begin; t.valid(); t = graph().task(t).lane_next) {
      if (launches.contains(t) || IsForwardHost(t)) work.push_back(t);
      if (t == last) return work;
    }
    return {};
  }

  // Where the host begins with the backward work of the layer that `call` belongs to.
  TaskId BackwardHost(TaskId call) const {
    TaskId at = call;
    const LayerId layer = graph().task(call).layer;
    for (TaskId t = graph().task(call).lane_prev; t.valid(); t = graph().task(t).lane_prev) {
      const Task& task = graph().task(t);
      const bool same = task.phase == Phase::kBackward && task.layer == layer && layer.valid();
      if (!same || task.kind == TaskKind::kWait || calls_.contains(t)) break;
      at = t;
    }
    return at;
  }

  Task Again(TaskId t, TaskId place) const {
    const Task from = graph().task(t), at = graph().task(place);
    return {.recorded_start = at.recorded_start,
            .duration = from.duration,
            .gap = std::max(from.gap, Duration{}),
            .earliest = at.earliest,
            .name = from.name,
            .scope = from.scope,
            .layer = from.layer,
            .detail = from.detail,
            .step = at.step,
            .copy = at.copy,
            .kind = from.kind,
            .phase = Phase::kBackward};
  }

  void RunAgain(const Segment& s) {
    const std::vector<TaskId> kernels = KernelsOf(s);
    if (kernels.empty()) return;
    ++segments_;
    kernels_ += kernels.size();
    const TaskId call = edit_.LaunchOf(s.backward);
    absl::flat_hash_map<TaskId, TaskId> calls;
    if (call.valid()) {
      const TaskId place = BackwardHost(call);
      for (TaskId t : HostWorkOf(kernels, call)) {
        calls[t] = edit_.InsertBefore(place, Again(t, place));
        first_.try_emplace(place, calls[t]);
      }
    }
    for (TaskId t : kernels) {
      const TaskId again = edit_.InsertBefore(s.backward, Again(t, s.backward));
      gpu_ += graph().task(t).duration;
      auto edge = launch_.find(t);
      if (edge == launch_.end()) continue;
      auto own = calls.find(edge->second.from);
      if (own != calls.end()) {
        Launch(own->second, again, edge->second);
      } else if (call.valid()) {
        Launch(call, again, {});  // part of a CUDA graph
      }
    }
  }

  // What the ops of a segment keep goes, but for as much as its input, and is there again while the
  // segment runs backward.
  void DropInside(const std::vector<Segment>& segments) {
    absl::flat_hash_set<ScopeId> done;  // copies of a layer share their ops
    for (const Segment& s : segments) {
      const uint32_t unit = edit_.NewUnit();
      double input = s.input;
      for (size_t i = s.begin; i < s.end; ++i) {
        const ForwardOp& op = ops_[i];
        if (op.kept <= 0 || !done.insert(op.shape.scope).second) continue;
        const double stays = std::min(input, op.kept);
        input -= stays;
        OpChange& change = edit_.ChangeOp(op.shape.scope);
        const double after = stays / op.needed;
        change.returns.push_back({.unit = unit, .from = {}, .share = change.kept - after});
        change.kept = after;
      }
    }
  }

  // What another thread waits for, such as the backward thread for the end of the forward pass,
  // comes before what runs again there.
  void MoveHandOffs() {
    std::vector<Edge> moved;
    edit_.DropEdges([&](const Graph&, const Edge& e) {
      auto first = first_.find(e.to);
      if (e.rule != Rule::kHandOff || e.to_anchor != Anchor::kStart || first == first_.end()) {
        return false;
      }
      moved.push_back(e);
      moved.back().to = first->second;
      return true;
    });
    for (const Edge& e : moved) {
      edit_.AddEdge(e.from, e.to, e.lag, e.rule, e.from_anchor, e.to_anchor);
    }
  }

  void TellCheckpointing(const std::vector<Segment>& segments) {
    if (segments_ == 0) return;
    DropInside(segments);
    std::map<std::pair<uint16_t, uint16_t>, size_t> passes;
    size_t most = 0;
    bool known = false;
    for (const Segment& s : segments) {
      most = std::max(most, ++passes[{ops_[s.begin].step, ops_[s.begin].pass}]);
      known |= s.kept > 0;
    }
    edit_.changes().memory.push_back(
        {.what = fmt::format("activations inside of {} segment{} are not kept", most,
                             most > 1 ? "s" : ""),
         .kept = true});
    edit_.changes().notes.push_back(
        fmt::format("{} forward kernels of {} segments run again (at most {} segments in a "
                    "step), {:.1f} ms of GPU time in all",
                    kernels_, segments_, most, gpu_.ms()));
    if (!known) {
      edit_.changes().notes.push_back(
          "what is no longer kept follows from shapes: record with record_shapes=True");
    }
  }

  const Params& params_;
  Editor& edit_;
  const std::vector<ForwardOp> ops_;
  absl::flat_hash_map<TaskId, Edge> launch_;
  absl::flat_hash_set<TaskId> waits_;
  absl::flat_hash_set<TaskId> calls_;          // that launch something, also those that run again
  absl::flat_hash_map<TaskId, TaskId> first_;  // by recorded host task: the first put before it
  size_t segments_ = 0, kernels_ = 0;
  Duration gpu_;
};

absl::Status RunCheckpointing(const Params& params, Editor& edit) {
  return Checkpointing(params, edit).Run();
}

constexpr Conflict kCheckpointingConflicts[] = {
    {.with = "offload",
     .reason = "it would drop what is on its way to the host",
     .comes = Conflict::kBefore}};

}  // namespace

constinit const Transform kCheckpointing = {
    .name = "checkpointing",
    .summary = "Activations are computed again instead of kept",
    .params = kCheckpointingParams,
    .apply = &RunCheckpointing,
    .model =
        "The kernels of the selected part of the forward pass, and the host work that launched "
        "them, run again just before the backward work of their segment, as long as they were "
        "recorded to take. A segment is a block of layers (a number in the path of the layer, or "
        "a module called ...Layer, ...Block or Bottleneck), else sqrt(n) of the n layers of a "
        "pass; only then, without `every` and `layers`, is the last segment left alone, since its "
        "backward begins at once.",
    .ignores =
        "Collectives and copies inside of segments, which are not repeated; saving and restoring "
        "the state of random numbers; the early end of recomputation in newer PyTorch, which "
        "leaves out what follows the last kept tensor.",
    .sources =
        "Chen et al.: Training Deep Nets with Sublinear Memory Cost (2016); "
        "torch.utils.checkpoint",
    .advice = {.effort = "~5 lines",
               .risk = "none",
               .how = "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"},
    .conflicts = kCheckpointingConflicts,
    .twice = "what is computed again is no longer kept: there is nothing left to save",
    .memory_model =
        "What the ops of a segment keep for backward goes, but for as many bytes as its input. "
        "While the segment runs backward all of it is on the GPU again; segments after it are "
        "done by then.",
};

}  // namespace daydream
