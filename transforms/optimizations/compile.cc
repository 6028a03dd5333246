// compile: finds the regions that torch.compile would compile, merges the small kernels in them and
// shortens the host work between launches.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/scopes.h"
#include "transforms/analysis/attention_chains.h"
#include "transforms/analysis/loader.h"
#include "transforms/core/floor_param.h"
#include "transforms/core/transform.h"
#include "transforms/edits/fuse_groups.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr std::string_view kCompileYesNo[] = {"yes", "no"};
constexpr ParamSpec kCompileParams[] = {
    {.name = "between",
     .unit = Unit::kDuration,
     .fallback = 15000,
     .low = 5000,
     .high = 30000,
     .max = 1e9,
     .help = "host time of compiled code from one launch to the next",
     .source = "medians in compiled regions of traces on A100: 5 us (recommender) and 30 us "
               "(segmentation, under the profiler)"},
    {.name = "guards",
     .unit = Unit::kDuration,
     .fallback = 90000,
     .low = 40000,
     .high = 360000,
     .max = 1e9,
     .help = "host time from the entry of a compiled region to its first launch",
     .source = "70 regions of the recommender: least 41 us, median 91 us; the one region of the "
               "segmentation model 360 us"},
    {.name = "min_launches",
     .unit = Unit::kNone,
     .fallback = 10,
     .low = 5,
     .high = 20,
     .min = 2,
     .max = 1e6,
     .help = "shorter runs of launches between two breaks stay as they are",
     .source = "design estimate, not measured",
     .whole = true},
    {.name = "longest",
     .unit = Unit::kDuration,
     .fallback = 1e6,
     .low = 0.5e6,
     .high = 2e6,
     .max = 1e12,
     .help = "host time between two launches that may still be the framework's; more is a break",
     .source = "design estimate, not measured: ops of traced programs take 10 to 100 us; loading "
               "of kernels at their first use takes longer"},
    {.name = "attention",
     .unit = Unit::kText,
     .text_fallback = "yes",
     .choices = kCompileYesNo,
     .help = "attention in the patterns that the compiler knows becomes one kernel",
     .source = "PyTorch 2.1, torch/_inductor/fx_passes/fuse_attention.py: scaling, added mask, "
               "softmax, dropout; no mask by selection"},
    kAttentionShareParam,
    kPassesParam,
    kKeptParam,
    kFloorParam,
};

// Fewer kernels of a compiler are those of a library, or of a function or two. A design estimate:
// compiled programs at hand have 1.3 % and more, one that was recorded eagerly 0.1 %.
constexpr double kCompiledShare = 0.005;

// Launches of one step and phase with nothing between them that needs the interpreter.
struct Region {
  TaskId first, last;
  size_t launches = 0;
};

Duration BetweenOf(const Params& p) { return Duration::FromDouble(p["between"]); }
Duration GuardsOf(const Params& p) { return Duration::FromDouble(p["guards"]); }
double LongestOf(const Params& p) {
  return static_cast<double>(Duration::FromDouble(p["longest"]).ns);
}
// Launches that are no region; counts are whole.
double TooFewOf(const Params& p) { return std::ceil(p["min_launches"]) - 1; }

// All parameters at an end of one of them.
struct Values {
  explicit Values(const Params& p)
      : between(BetweenOf(p)),
        guards(GuardsOf(p)),
        longest(LongestOf(p)),
        too_few(TooFewOf(p)),
        share(p["share"]),
        merged{.floor = FloorOf(p), .passes = p["passes"], .kept = p["kept"]} {}

  Duration between, guards;
  double longest, too_few, share;
  RunModel merged;
};

// A limit that comes from a parameter, and which values of it would have told the same.
class Limit {
 public:
  explicit Limit(double limit) : limit_(limit) {}
  bool Exceeds(double value) {
    if (value > limit_) {
      least_over_ = std::min(least_over_, value);
    } else {
      most_within_ = std::max(most_within_, value);
    }
    return value > limit_;
  }
  bool SameAt(double other) const { return other < least_over_ && other >= most_within_; }

 private:
  double limit_;
  double least_over_ = std::numeric_limits<double>::infinity();
  double most_within_ = -std::numeric_limits<double>::infinity();
};

class Compile {
 public:
  Compile(const Params& params, Editor& edit)
      : params_(params),
        at_ends_(edit.AtEnds([](const EndView& at) { return Values(at.params()); })),
        edit_(edit),
        floor_(FloorOf(params)),
        loader_(edit.graph()),
        groups_(edit) {}

  absl::Status Run() {
    if (IsCompiledAlready()) return absl::OkStatus();
    edit_.NeedEditsWhereOthers([](const Task& t) { return IsHost(t.kind); });
    FindRegions();
    TellEnds();
    if (regions_.empty()) {
      edit_.changes().notes.push_back(
          fmt::format("no {} launches of forward or backward follow each other without a break "
                      "(min_launches)",
                      params_["min_launches"]));
      return absl::OkStatus();
    }
    MarkRegions();
    if (params_.text("attention") == "yes") FuseAttention();
    FuseRuns();
    for (const Region& region : regions_) Shorten(region);
    TellEnds();
    TellCompile();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // Valid until the next call.
  template <class Of>
  std::span<const Duration> ForEnds(const Of& of) {
    for_ends_.clear();
    for (const Values& there : at_ends_) for_ends_.push_back(of(there));
    return for_ends_;
  }

  // AOTAutograd, which torch.compile and functorch run, names what it made so.
  bool InCompiledFunction(TaskId call) const {
    for (ScopeId s : ScopesAround(graph(), graph().task(call).scope)) {
      if (graph().Name(ScopeAt(graph(), s).name).starts_with("CompiledFunction")) return true;
    }
    return false;
  }

  bool RunsAsCompiledFunction() {
    size_t inside = 0, all = 0;
    for (const Edge& e : graph().edges()) {
      if (e.rule != Rule::kLaunch || graph().task(e.to).kind != TaskKind::kKernel) continue;
      ++all;
      if (InCompiledFunction(e.from)) ++inside;
    }
    if (inside * 2 < all || inside == 0) return false;
    edit_.changes().notes.push_back(fmt::format(
        "it runs as CompiledFunction (AOTAutograd) already, which launches {} of {} kernels; what "
        "another compiler behind it would make of them, the trace does not say",
        inside, all));
    return true;
  }

  bool IsCompiledAlready() {
    if (RunsAsCompiledFunction()) return true;
    size_t compiled = 0, all = 0;
    for (const Task& task : graph().tasks()) {
      if (task.removed || task.kind != TaskKind::kKernel) continue;
      ++all;
      if (graph().Name(task.name).starts_with("triton_")) ++compiled;
    }
    if (compiled == 0) return false;
    auto& notes = edit_.changes().notes;
    if (static_cast<double>(compiled) < kCompiledShare * static_cast<double>(all)) {
      notes.push_back(
          fmt::format("kernels with names of a compiler: {} of {}; most of the program is not "
                      "compiled",
                      compiled, all));
      return false;
    }
    notes.push_back(
        fmt::format("it is compiled already (kernels with names of a compiler: {} of {}), and what "
                    "runs beside them was left out by the program or by the compiler",
                    compiled, all));
    return true;
  }

  bool TooLong(Duration time) { return longest_.Exceeds(static_cast<double>(time.ns)); }

  // Regions that are others at an end.
  void TellEnds() {
    for (size_t e = 0; e < at_ends_.size(); ++e) {
      const Values& there = at_ends_[e];
      if (!longest_.SameAt(there.longest) || !too_few_.SameAt(there.too_few)) edit_.NeedEditsAt(e);
    }
  }

  // What a launch call belongs to: the phase of its kernel, or nothing that is compiled.
  bool IsCompiled(TaskId call) const {
    for (TaskId t : edit_.LaunchedBy(call)) {
      const Task& task = graph().task(t);
      if (task.kind != TaskKind::kKernel && task.kind != TaskKind::kMemset) return false;
      if (task.phase == Phase::kOptimizer || task.phase == Phase::kData) return false;
      if (groups_.InOptimizerStep(t)) return false;
    }
    return true;
  }

  void FindRegions() {
    longest_ = Limit(LongestOf(params_));
    too_few_ = Limit(TooFewOf(params_));
    waits_.assign(graph().size(), false);
    for (const Edge& e : graph().edges()) {
      if (e.rule == Rule::kHostWait) waits_[e.to.index()] = true;
    }
    for (const GraphLane& lane : graph().lanes()) {
      if (lane.lane.kind != LaneKind::kThread) continue;
      Region region;
      Duration since;  // host time since the last launch
      auto close = [&](bool at_break) {
        if (region.launches > 0 && too_few_.Exceeds(static_cast<double>(region.launches))) {
          regions_.push_back(region);
          if (at_break) ++breaks_;
        }
        region = {};
      };
      for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
        const Task& task = graph().task(t);
        if (task.removed) continue;
        if (IsHost(task.kind)) since += task.duration + task.gap;
        // Where no region is open, none ends here, however long it took.
        if (region.launches > 0 && TooLong(since)) close(false);
        if (waits_[t.index()] || loader_.Around(task.scope).valid()) close(waits_[t.index()]);
        const auto launched = edit_.LaunchedBy(t);
        if (launched.empty()) continue;
        since = task.gap;
        if (!IsCompiled(t) || launched.size() > 1) {
          close(false);
          continue;
        }
        if (region.launches > 0) {
          const Task& before = graph().task(edit_.LaunchedBy(region.last).front());
          const Task& now = graph().task(launched.front());
          if (before.step != now.step || before.phase != now.phase) close(false);
        }
        if (region.launches++ == 0) region.first = t;
        region.last = t;
      }
      close(false);
    }
  }

  void MarkRegions() {
    region_of_.assign(graph().size(), 0);
    for (size_t i = 0; i < regions_.size(); ++i) {
      for (TaskId t = regions_[i].first; t.valid(); t = graph().task(t).lane_next) {
        for (TaskId k : edit_.LaunchedBy(t)) region_of_[k.index()] = static_cast<uint32_t>(i + 1);
        if (t == regions_[i].last) break;
      }
    }
  }

  bool InOneRegion(const std::vector<TaskId>& kernels) const {
    const uint32_t region = region_of_[kernels.front().index()];
    return region != 0 && std::all_of(kernels.begin(), kernels.end(),
                                      [&](TaskId t) { return region_of_[t.index()] == region; });
  }

  void FuseAttention() {
    const DeviceSpec* spec = nullptr;
    for (size_t i = 0; i < graph().size() && spec == nullptr; ++i) {
      if (region_of_[i] != 0) spec = DeviceOf(graph(), TaskId(i)).spec;
    }
    if (spec == nullptr) return;
    const AttentionSearch search = FindAttention(edit_, *spec);
    const bool selects = std::any_of(search.chains.begin(), search.chains.end(),
                                     [](const AttentionChain& c) { return c.selects; });
    for (const AttentionChain& chain : search.chains) {
      if (selects || !InOneRegion(chain.kernels)) continue;
      Duration now;
      for (TaskId t : chain.kernels) now += graph().task(t).duration;
      const auto time_with = [&](double share, Duration floor) {
        const double ns = FusedAttentionNs(*spec, chain.shape, chain.dtype, share);
        return std::max(Duration::FromDouble(ns), floor);
      };
      const Duration then = time_with(params_["share"], floor_);
      const std::span<const Duration> at_ends =
          ForEnds([&](const Values& there) { return time_with(there.share, there.merged.floor); });
      const std::vector<Duration> now_at_ends = edit_.AtEnds([&](const EndView& at) {
        Duration sum;
        for (TaskId t : chain.kernels) sum += at.DurationOf(t);
        return sum;
      });
      for (size_t e = 0; e < at_ends.size(); ++e) {
        if ((at_ends[e] >= now_at_ends[e]) != (then >= now)) edit_.NeedEditsAt(e);
      }
      if (then >= now) continue;
      groups_.Merge(chain.kernels, "compiled_attention", then, "attention in one kernel",
                    /*whole_step=*/false, at_ends);
      if (!chain.shape.backward) groups_.KeepBetween(chain.kernels, 0);
      ++attention_;
    }
  }

  void FuseRuns() {
    const FuseGroups::Classes classes = {KernelClass::kElementwise, KernelClass::kNorm,
                                         KernelClass::kSoftmax, KernelClass::kReduce,
                                         KernelClass::kCopy};
    for (const std::vector<TaskId>& run : groups_.Runs(classes)) {
      if (!InOneRegion(run)) continue;
      const bool training =
          graph().task(run.front()).phase == Phase::kForward && groups_.has_backward();
      bool shaped = false;
      const Duration time = groups_.TimeOf(
          run,
          {.floor = floor_, .passes = params_["passes"], .kept = training ? params_["kept"] : 0},
          &shaped);
      groups_.Merge(run, fmt::format("compiled_fused_{}", run.size()), time,
                    "kernels merged by the compiler", /*whole_step=*/false,
                    edit_.AtEnds([&](const EndView& at) {
                      RunModel model = at_ends_[at.end].merged;
                      if (!training) model.kept = 0;
                      return groups_.TimeOf(run, model, at);
                    }));
      if (training) groups_.KeepBetween(run, params_["kept"]);
      kernels_ += run.size(), ++merged_;
      by_shape_ += shaped ? 1 : 0;
    }
  }

  // What is left between launches is the time of generated code, never more than it was.
  void Shorten(const Region& region) {
    const Duration most = BetweenOf(params_);
    edit_.BeginCause("host time of compiled code");
    std::vector<TaskId> inside;
    Duration since;
    TaskId launch;  // the last one that is left
    auto finish = [&] {
      for (TaskId t : inside) {
        if (graph().task(t).kind == TaskKind::kHost)
          edit_.Remove({&t, 1});
        else if (graph().task(t).gap > Duration{})
          edit_.SetGap(t, {});
      }
      inside.clear();
      if (!launch.valid()) return;
      edit_.SetGap(launch, std::min(since, most));
      edit_.SetGapAtEnds(
          launch, ForEnds([since](const Values& there) { return std::min(since, there.between); }));
    };
    for (TaskId t = region.first; t.valid(); t = graph().task(t).lane_next) {
      const Task& task = graph().task(t);
      const bool launches = !task.removed && !edit_.LaunchedBy(t).empty();
      if (launches) {
        if (launch.valid()) finish();
        launch = t;
        since = task.gap;
        if (t == region.last) break;
        continue;
      }
      if (!task.removed) {
        inside.push_back(t);
        since += task.kind == TaskKind::kHost ? task.duration + task.gap : task.gap;
      }
      if (t == region.last) {  // merged into an earlier launch
        if (launch.valid()) finish();
        break;
      }
    }
    // What the op of the first launch did before it, unless that was more than an op does.
    const ScopeId op = OutermostOp(graph(), graph().task(region.first).scope);
    std::vector<TaskId> before;
    Duration sum;
    for (TaskId t = graph().task(region.first).lane_prev; t.valid() && op.valid();
         t = graph().task(t).lane_prev) {
      const Task& task = graph().task(t);
      const bool inserted = t.index() >= waits_.size();
      if (task.kind != TaskKind::kHost || inserted || waits_[t.index()] ||
          OutermostOp(graph(), task.scope) != op)
        break;
      before.push_back(t);
      sum += task.duration + task.gap;
    }
    if (!TooLong(sum)) edit_.Remove(before);
    edit_.BeginCause("guards of compiled regions");
    const Task first = graph().task(region.first);
    const TaskId guards = edit_.InsertBefore(region.first, {.recorded_start = first.recorded_start,
                                                            .duration = GuardsOf(params_),
                                                            .name = edit_.graph().AddName("guards"),
                                                            .lane = first.lane,
                                                            .scope = first.scope,
                                                            .layer = first.layer,
                                                            .step = first.step,
                                                            .kind = TaskKind::kHost,
                                                            .phase = first.phase});
    edit_.SetAtEnds(guards, ForEnds([](const Values& there) { return there.guards; }));
  }

  void TellCompile() {
    auto& changes = edit_.changes();
    changes.notes.push_back(fmt::format("{} compiled regions; {} kernels become {}",
                                        regions_.size(), kernels_, merged_));
    if (attention_ > 0) {
      changes.notes.push_back(fmt::format("{} attentions become one kernel each", attention_));
    }
    if (by_shape_ < merged_) {
      changes.notes.push_back(fmt::format("bytes of {} of them are told from times: record shapes",
                                          merged_ - by_shape_));
    }
    if (breaks_ > 0) {
      changes.notes.push_back(fmt::format("{} regions end where the host reads a result", breaks_));
    }
    changes.warnings.push_back("whether the compiler takes the whole model cannot be seen here");
  }

  const Params& params_;
  const std::vector<Values> at_ends_;  // of open parameters
  std::vector<Duration> for_ends_;
  Editor& edit_;
  const Duration floor_;
  LoaderScopes loader_;
  FuseGroups groups_;
  std::vector<bool> waits_;  // by task
  Limit longest_{0}, too_few_{0};
  std::vector<Region> regions_;
  std::vector<uint32_t> region_of_;  // by GPU task: region + 1
  size_t breaks_ = 0, attention_ = 0;
  size_t kernels_ = 0, merged_ = 0, by_shape_ = 0;
};

absl::Status RunCompile(const Params& params, Editor& edit) { return Compile(params, edit).Run(); }

}  // namespace

constinit const Transform kCompile = {
    .name = "compile",
    .summary = "The model runs through torch.compile",
    .params = kCompileParams,
    .ends = AtEnds::kGaps,
    .apply = &RunCompile,
    .model =
        "Launches of forward and backward, up to a read of a result, form a compiled region. In "
        "it, runs of elementwise, norm, softmax and reduction kernels of equal size become one "
        "kernel, which moves inputs and results once (times by bytes, as in fuse); attention in "
        "a pattern that the compiler knows becomes one kernel; products and convolutions stay. "
        "Host time between launches is that of generated code, never more than it was, and "
        "each region begins with its guards. The optimizer stays as it is. A program with kernels "
        "of torch.compile is compiled already: what else it runs was left out by it or by the "
        "compiler.",
    .ignores =
        "Compilation itself, recompilation for new shapes, breaks that the program's source "
        "causes, other choices of products (max-autotune).",
    .sources =
        "Ansel et al.: PyTorch 2 (ASPLOS'24); fusion rule and its check on models that "
        "NeuSight (ASPLOS'25) measured: docs/cost-model.md",
    .advice = {.effort = "1 line",
               .risk = "compile time, fixed shapes",
               .how = "model = torch.compile(model)"},
    .memory_model =
        "Of what passes between the ops of a merged forward kernel, and that no other op needs, "
        "the share `kept` stays for backward and the rest is made again (the partitioner of "
        "AOTAutograd); of merged attention the scores are not kept.",
};

}  // namespace daydream
