// offload: copies what layers keep for backward to the host and back, on lanes beside the kernels.
#include <algorithm>
#include <array>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "base/text.h"
#include "transforms/analysis/host_calls.h"
#include "transforms/analysis/link_rate.h"
#include "transforms/analysis/precision.h"
#include "transforms/analysis/saved_tensors.h"
#include "transforms/core/select.h"
#include "transforms/core/transform.h"
#include "transforms/edits/inserted_kernel.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

// Usable rate of PCIe 3.0 x16, the slowest link of the GPUs that are known (link_rate.cc).
constexpr double kSlowestLink = 12.3e9;
// Of the rates that can be given.
constexpr double kLeastRate = 1e6, kMostRate = 1e15;

constexpr std::string_view kSyncs[] = {"none", "layer"};
constexpr ParamSpec kOffloadParams[] = {
    {.name = "select",
     .unit = Unit::kText,
     .text_fallback = "all",
     .help = "what is offloaded: all, conv (inputs of convolutions), or a selector of forward "
             "kernels such as layer:features",
     .source = "vDNN's policies all and conv; else chosen by the user"},
    {.name = "rate",
     .unit = Unit::kBandwidth,
     .fallback = 0,
     .max = kMostRate,
     .help = "rate of copies in each direction; 0 = of this trace's pinned copies, else 78 % of "
             "the GPU's PCIe",
     .source = "pinned copies of the trace; data sheets; 12.3 of 15.75 GB/s measured on a 2080 "
               "Ti and a V100 (docs/optimizations/pin-memory.md)"},
    {.name = "ahead",
     .unit = Unit::kNone,
     .fallback = 1,
     .low = 1,
     .high = 4,
     .min = 1,
     .max = 1e6,
     .help = "offloaded layers between the backward work that starts a prefetch and its use",
     .source = "vDNN (MICRO'16), section 3.3: one layer ahead, more where that is a short one",
     .whole = true},
    {.name = "min",
     .unit = Unit::kBytes,
     .fallback = 1 << 20,
     .low = 1 << 18,
     .high = 16 << 20,
     .max = 1e12,
     .help = "smaller tensors stay",
     .source = "design estimate, not measured: a copy of 1 MiB takes about ten times its call"},
    {.name = "sync",
     .unit = Unit::kText,
     .text_fallback = "none",
     .choices = kSyncs,
     .help = "layer: the next forward kernel waits for the copy, so that its memory is free",
     .source = "vDNN (MICRO'16), section 3.2, waits at the end of each layer"},
};

// What one layer keeps for backward, and when it is needed.
struct OffloadStash {
  uint16_t step = 0, pass = 0;
  LayerId layer;
  uint16_t copy = 0;          // of the layer
  TaskId last, backward;      // last forward use, first backward use
  size_t use = 0, order = 0;  // places of the two: row of the forward op, order of backward work
  double bytes = 0;
  std::vector<ScopeId> ops;  // that keep it
};

// A layer, or a copy of it.
using Owner = std::pair<LayerId, uint16_t>;
Owner OwnerOf(const OffloadStash& s) { return {s.layer, s.copy}; }

// Which copies to the host end before the forward pass does when the GPU is never idle: then least
// is out at its end, and most is left on the GPU.
class OutByEnd {
 public:
  OutByEnd(const Graph& graph, std::span<const ForwardOp> ops, const OffloadStash& pass) {
    const ForwardOp *first = nullptr, *last = nullptr;
    for (const ForwardOp& op : ops) {
      if (op.step != pass.step || op.pass != pass.pass) continue;
      if (first == nullptr) first = &op;
      last = &op;
    }
    Duration busy;
    for (TaskId t = first->first; t.valid(); t = graph.task(t).lane_next) {
      if (IsGpu(graph.task(t).kind)) busy += graph.task(t).duration;
      busy_[t] = busy;
      if (t == last->last) break;
    }
    end_ = busy;
  }

  // Copies of one direction run one after the other. Work on other streams counts as the last.
  bool Add(TaskId after, Duration copy) {
    const auto it = busy_.find(after);
    free_ = std::max(free_, it != busy_.end() ? it->second : end_) + copy;
    return free_ <= end_;
  }

 private:
  absl::flat_hash_map<TaskId, Duration> busy_;  // GPU time up to the end of a task
  Duration end_, free_;
};

class Offload {
 public:
  Offload(const Params& params, Editor& edit)
      : params_(params), edit_(edit), ops_(ForwardOps(edit.graph())) {}

  absl::Status Run() {
    DD_RETURN_IF_ERROR(CheckRate());
    DD_RETURN_IF_ERROR(CheckTrained("offload", graph(), ops_));
    DD_RETURN_IF_ERROR(CheckShapes("offload", ops_));
    DD_RETURN_IF_ERROR(FindStashes());
    if (stashes_.empty()) {
      edit_.changes().notes.push_back("no layer that is selected keeps enough for backward");
      return absl::OkStatus();
    }
    FindRates();
    costs_ = MeasureHostCosts(graph());
    for (size_t begin = 0; begin < stashes_.size();) {
      size_t end = begin;
      while (end < stashes_.size() && SamePass(stashes_[begin], stashes_[end])) ++end;
      OffloadPass(begin, end);
      begin = end;
    }
    TellOffload();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  static bool SamePass(const OffloadStash& a, const OffloadStash& b) {
    return a.step == b.step && a.pass == b.pass;
  }

  absl::Status CheckRate() const {
    const double rate = params_["rate"];
    if (rate == 0 || rate >= kLeastRate) return absl::OkStatus();
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0103",
                       .what = fmt::format("offload: rate = {} is out of range ({} to {}, or 0)",
                                           FormatValue(rate, Unit::kBandwidth),
                                           FormatValue(kLeastRate, Unit::kBandwidth),
                                           FormatValue(kMostRate, Unit::kBandwidth)),
                       .fix = "daydream opt show offload"});
  }

  absl::Status FindStashes() {
    std::vector<bool> wanted;
    const std::string_view select = params_.text("select");
    if (select != "all" && select != "conv") {
      DD_ASSIGN_OR_RETURN(Selector selector, Selector::Compile(select));
      wanted.assign(graph().size(), false);
      for (TaskId t : selector.Select(graph())) wanted[t.index()] = true;
    }
    // What an op needs may be kept by an op before it: a convolution reads the result of a ReLU.
    std::vector<bool> leaves(ops_.size(), false);
    for (size_t i = 0; i < ops_.size(); ++i) {
      const ForwardOp& op = ops_[i];
      if (select == "conv" && !Contains(op.shape.name, "conv")) continue;
      if (!wanted.empty() && !wanted[op.first.index()]) continue;
      leaves[i] = true;
      for (size_t keeper : op.reads) leaves[keeper] = true;
    }
    std::vector<OffloadStash> all;
    std::map<std::tuple<uint16_t, uint16_t, LayerId, uint16_t>, size_t> rows;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const ForwardOp& op = ops_[i];
      if (leaves[i] && op.kept > 0 && op.layer.valid()) {
        if (op.backward.valid()) {
          auto [it, fresh] = rows.try_emplace({op.step, op.pass, op.layer, op.copy}, all.size());
          if (fresh) {
            all.push_back({.step = op.step, .pass = op.pass, .layer = op.layer, .copy = op.copy});
          }
          OffloadStash& s = all[it->second];
          s.bytes += op.kept;
          s.ops.push_back(op.shape.scope);
          AddUse(s, i);
        } else {
          ++without_backward_;
        }
      }
      for (size_t keeper : op.reads) {
        const ForwardOp& kept = ops_[keeper];
        const auto it = rows.find({kept.step, kept.pass, kept.layer, kept.copy});
        if (leaves[keeper] && it != rows.end()) AddUse(all[it->second], i);
      }
    }
    for (const OffloadStash& s : all) {
      if (s.bytes >= params_["min"]) stashes_.push_back(s);
    }
    return absl::OkStatus();
  }

  // It leaves after its last forward use and has to be back for its first backward use.
  void AddUse(OffloadStash& s, size_t row) const {
    const ForwardOp& op = ops_[row];
    s.last = op.last;
    s.use = row;
    const bool first = !s.backward.valid() || op.backward_order < s.order;
    if (!op.backward.valid() || !first) return;
    s.backward = op.backward;
    s.order = op.backward_order;
  }

  // Copies of the program keep their part of the link.
  void FindRates() {
    rates_ = PinnedRates(graph());
    source_ = "pinned copies of this trace";
    for (int way : {kToDevice, kToHost}) {
      if (rates_[way] == 0) rates_[way] = rates_[1 - way];
    }
    if (rates_[kToDevice] == 0) {
      const double usable = UsableLinkRate(graph(), stashes_.front().last);
      const bool known = usable > 0;
      rates_.fill(known ? usable : kSlowestLink);
      source_ = known ? "78 % of the GPU's PCIe" : "PCIe 3.0 x16, since the GPU is not known";
    }
    if (params_["rate"] > 0) {
      rates_.fill(params_["rate"]);
      source_ = "as given";
    }
    const std::array<double, 2> others = LinkShares(graph());
    constexpr double kLeast = 0.1;  // of the link, however busy it is
    for (int way : {kToDevice, kToHost}) rates_[way] *= std::max(kLeast, 1 - others[way]);
  }

  LaneId LaneOf(CopyWay way, const Task& beside) {
    auto [it, fresh] = lanes_.try_emplace({beside.lane, way}, LaneId::None());
    if (fresh) {
      it->second =
          edit_.NewStream(way == kToHost ? "offload" : "prefetch of offloaded", beside.lane);
    }
    return it->second;
  }

  // An asynchronous copy, launched right after the launch of `at` or right before it.
  TaskId AddCopy(const OffloadStash& s, CopyWay way, TaskId at) {
    const Task beside = graph().task(at);
    const CopyDetail detail{.bytes = static_cast<uint64_t>(s.bytes),
                            .from = way == kToHost ? Memory::kDevice : Memory::kPinned,
                            .to = way == kToHost ? Memory::kPinned : Memory::kDevice};
    const LaneId lane = LaneOf(way, beside);
    const TaskId copy = edit_.Append(
        {.recorded_start = beside.recorded_start,
         .duration = Duration::FromDouble(s.bytes / rates_[way] * 1e9),
         .name = edit_.graph().AddName(way == kToHost ? "Memcpy DtoH (Device -> Pinned)"
                                                      : "Memcpy HtoD (Pinned -> Device)"),
         .lane = lane,
         .scope = beside.scope,
         .layer = s.layer,
         .detail = edit_.graph().AddCopyDetail(detail),
         .step = s.step,
         .kind = TaskKind::kMemcpy,
         .phase = beside.phase});
    const TaskId launch = edit_.LaunchOf(at);
    if (!launch.valid()) return copy;
    const Task call =
        CallBeside(graph().task(launch), edit_.graph().AddName("cudaMemcpyAsync"), costs_.copy);
    const TaskId own =
        way == kToHost ? edit_.InsertAfter(launch, call) : edit_.InsertBefore(launch, call);
    edit_.AddEdge(own, copy, {}, Rule::kLaunch);
    return copy;
  }

  // The next kernel of the stream after `t`.
  TaskId NextKernel(TaskId t) const {
    for (TaskId n = graph().task(t).lane_next; n.valid(); n = graph().task(n).lane_next) {
      if (graph().task(n).kind == TaskKind::kKernel) return n;
    }
    return TaskId::None();
  }

  // Stashes [begin, end) of one pass, in forward order. Those that backward needs first stay: their
  // prefetch would have to begin before the backward pass does.
  void OffloadPass(size_t begin, size_t end) {
    std::vector<OffloadStash> pass(stashes_.begin() + static_cast<std::ptrdiff_t>(begin),
                                   stashes_.begin() + static_cast<std::ptrdiff_t>(end));
    const auto ahead = static_cast<size_t>(params_["ahead"]);
    if (pass.size() <= ahead) return;
    std::vector<OffloadStash> backward = pass;
    // A layer whose ops are scattered leaves with the last of them; lanes run in order.
    std::stable_sort(pass.begin(), pass.end(),
                     [](const OffloadStash& a, const OffloadStash& b) { return a.use < b.use; });
    std::stable_sort(
        backward.begin(), backward.end(),
        [](const OffloadStash& a, const OffloadStash& b) { return a.order < b.order; });
    const std::map<Owner, TaskId> triggers = Triggers(backward, ahead);
    std::map<Owner, TaskId> out;
    OutByEnd leaving(graph(), ops_, pass.front());
    edit_.BeginCause("copies out during the forward pass");
    for (const OffloadStash& s : pass) {
      if (!triggers.contains(OwnerOf(s))) continue;
      const TaskId copy = AddCopy(s, kToHost, s.last);
      edit_.AddEdge(s.last, copy);
      out[OwnerOf(s)] = copy;
      const bool waits = params_.text("sync") == "layer";
      const bool gone = leaving.Add(s.last, graph().task(copy).duration);
      if (waits || gone) {
        Leave(s, triggers.at(OwnerOf(s)));
      } else {
        late_[{s.step, s.pass}] += s.bytes;
      }
      if (!waits) continue;
      const TaskId next = NextKernel(s.last);
      if (next.valid()) edit_.AddEdge(copy, next);
    }
    edit_.BeginCause("copies back during the backward pass");
    double moved = 0;
    for (size_t i = ahead; i < backward.size(); ++i) {
      const OffloadStash& s = backward[i];
      const auto found = triggers.find(OwnerOf(s));
      if (found == triggers.end()) continue;
      const TaskId trigger = found->second;
      const TaskId copy = AddCopy(s, kToDevice, trigger);
      edit_.AddEdge(trigger, copy, {}, Rule::kTransform, Anchor::kStart);
      edit_.AddEdge(out[OwnerOf(s)], copy);
      edit_.AddEdge(copy, s.backward);
      moved += s.bytes;
      ++copies_;
    }
    most_ = std::max(most_, moved);
  }

  // What waits in host memory is on the GPU again from the begin of its prefetch on.
  void Leave(const OffloadStash& s, TaskId prefetch) {
    const uint32_t unit = edit_.NewUnit();
    for (ScopeId scope : s.ops) {
      OpChange& change = edit_.ChangeOp(scope);
      if (change.kept <= 0) continue;  // of another copy of the layer
      change.returns.push_back({.unit = unit, .from = prefetch, .share = change.kept});
      change.kept = 0;
    }
  }

  // The backward work whose begin starts the prefetch of a layer: that of `ahead` layers before it,
  // or earlier, where one backward op needs what several layers kept. No entry: nothing is earlier.
  static std::map<Owner, TaskId> Triggers(const std::vector<OffloadStash>& backward, size_t ahead) {
    std::map<Owner, TaskId> triggers;
    for (size_t i = ahead; i < backward.size(); ++i) {
      size_t at = i - ahead;
      while (at > 0 && backward[at].order >= backward[i].order) --at;
      if (backward[at].order < backward[i].order) {
        triggers[OwnerOf(backward[i])] = backward[at].backward;
      }
    }
    return triggers;
  }

  void TellOffload() {
    if (copies_ == 0) {
      edit_.changes().notes.push_back("too few layers keep something for backward");
      return;
    }
    // Without waits the forward pass may run ahead of the copies.
    double late = 0;
    for (const auto& [pass, bytes] : late_) late = std::max(late, bytes);
    std::string what = fmt::format("{:.1f} MB kept for backward wait in host memory", most_ / 1e6);
    if (late > 0) {
      what += fmt::format(", {:.1f} MB of it after the forward pass at the earliest", late / 1e6);
    }
    edit_.changes().memory.push_back(
        {.what = std::move(what), .kept = true, .at_most = params_.text("sync") != "layer"});
    edit_.changes().notes.push_back(
        fmt::format("{} tensors go to the host at {:.1f} GB/s and come back at {:.1f} GB/s ({}, "
                    "less what other copies take)",
                    copies_, rates_[kToHost] / 1e9, rates_[kToDevice] / 1e9, source_));
    if (without_backward_ > 0) {
      edit_.changes().notes.push_back(fmt::format(
          "{} ops stay: it cannot be told when backward needs them", without_backward_));
    }
  }

  const Params& params_;
  Editor& edit_;
  const std::vector<ForwardOp> ops_;
  std::vector<OffloadStash> stashes_;
  std::array<double, 2> rates_{};  // by CopyWay
  std::string source_;
  HostCosts costs_;
  std::map<std::pair<LaneId, CopyWay>, LaneId> lanes_;  // by stream of the kernels
  size_t copies_ = 0, without_backward_ = 0;
  std::map<std::pair<uint16_t, uint16_t>, double> late_;  // by step and pass
  double most_ = 0;
};

absl::Status RunOffload(const Params& params, Editor& edit) { return Offload(params, edit).Run(); }

constexpr Conflict kOffloadConflicts[] = {
    {.with = "hidden", .reason = "copies would keep their sizes", .comes = Conflict::kAfter},
    {.with = "amp", .reason = "copies would stay as wide as before", .comes = Conflict::kAfter}};

}  // namespace

constinit const Transform kOffload = {
    .name = "offload",
    .summary = "What is kept for backward waits in host memory",
    .params = kOffloadParams,
    .apply = &RunOffload,
    .model =
        "After the forward work of a layer, what it keeps for backward is copied to pinned host "
        "memory; before its backward work it is copied back. Each direction has a lane of its "
        "own. The copy back may begin when the backward work of the layer before it (`ahead` "
        "layers before it) begins; backward work waits for its copy. Both cost the host a call. "
        "Copies take bytes / rate; of the rate, recorded copies of the same direction keep the "
        "share of the step that they are busy. What backward needs first stays on the GPU.",
    .ignores =
        "Kernels that slow down while copies use the GPU's memory; several GPUs on one link; "
        "time to allocate pinned memory (once).",
    .sources = "Rhu et al.: vDNN (MICRO 2016), sections 3.2 and 3.3",
    .advice = {.effort = "~50 lines",
               .risk = "host memory",
               .how = "torch.autograd.graph.saved_tensors_hooks(pack, unpack) that copy on a side "
                      "stream; save_on_cpu(pin_memory=True) shows the memory but waits"},
    .conflicts = kOffloadConflicts,
    .twice = "what waits in host memory already would be copied again",
    .memory_model =
        "What leaves is not on the GPU from the end of the forward pass until its copy back "
        "begins. With sync=none the forward pass may end before a copy does: what would still be "
        "on its way, were the GPU never idle, counts as not gone, so that the peak is at most "
        "the one that is told.",
};

}  // namespace daydream
