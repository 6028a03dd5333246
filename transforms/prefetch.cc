#include <algorithm>

#include "transforms/loader.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

constexpr ParamSpec kParams[] = {
    {.name = "workers",
     .unit = Unit::kNone,
     .fallback = 4,
     .low = 4,
     .high = 4,
     .min = 1,
     .max = 256,
     .help = "loader processes (num_workers)",
     .source = "chosen by the user"},
    {.name = "recorded",
     .unit = Unit::kNone,
     .fallback = 0,
     .low = 0,
     .high = 0,
     .min = 0,
     .max = 256,
     .help = "loader processes of the recorded run; 0 = told from the trace",
     .source = "known to whoever recorded the trace"},
    {.name = "next_cost",
     .unit = Unit::kDuration,
     .fallback = 1e6,
     .low = 0.1e6,
     .high = 1.5e6,
     .min = 0,
     .max = 1e10,
     .help = "host time to receive a batch that is ready",
     .source = "measured: docs/optimizations/prefetch.md"},
    {.name = "ahead",
     .unit = Unit::kNone,
     .fallback = 2,
     .low = 2,
     .high = 2,
     .min = 1,
     .max = 1024,
     .help = "batches each worker prepares ahead (prefetch_factor)",
     .source = "PyTorch documentation, torch.utils.data.DataLoader: default 2"},
    {.name = "host_slowdown",
     .unit = Unit::kShare,
     .fallback = 0.15,
     .low = 0,
     .high = 0.3,
     .min = 0,
     .max = 10,
     .help = "how much a busy worker slows other host work",
     .source = "measured: docs/optimizations/prefetch.md"},
    {.name = "copy_slowdown",
     .unit = Unit::kShare,
     .fallback = 1,
     .low = 0,
     .high = 1.5,
     .min = 0,
     .max = 10,
     .help = "how much a busy worker slows copies from pageable memory",
     .source = "measured: docs/optimizations/prefetch.md"},
    {.name = "gpu_slowdown",
     .unit = Unit::kShare,
     .fallback = 0.02,
     .low = 0,
     .high = 0.04,
     .min = 0,
     .max = 10,
     .help = "how much a busy worker slows kernels",
     .source = "measured: docs/optimizations/prefetch.md"},
};

// One call of the loader's next().
struct Fetch {
  ScopeId scope;
  std::vector<TaskId> tasks;  // host work in it, in lane order
  Duration work;
};

class Prefetch {
 public:
  Prefetch(const Params& params, Editor& edit)
      : params_(params), edit_(edit), loader_(edit.graph()) {}

  absl::Status Run() {
    FindFetches();
    if (fetches_.empty()) {
      edit_.changes().notes.push_back("no range named after a DataLoader in this trace");
      return absl::OkStatus();
    }
    DD_RETURN_IF_ERROR(FindWork());
    Slow(BusyWorkers());
    MoveToWorkers();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  void FindFetches() {
    for (const GraphLane& lane : graph().lanes()) {
      if (lane.lane.kind != LaneKind::kThread) continue;
      for (TaskId t = lane.first; t.valid(); t = graph().task(t).lane_next) {
        const Task& task = graph().task(t);
        ScopeId scope = loader_.Around(task.scope);
        if (!scope.valid() || task.removed || task.kind != TaskKind::kHost) continue;
        if (fetches_.empty() || fetches_.back().scope != scope) {
          fetches_.push_back({scope, {}, {}});
        }
        Fetch& fetch = fetches_.back();
        fetch.tasks.push_back(t);
        fetch.work += task.duration;
        if (loader_.OwnsGapOf(task)) fetch.work += task.gap;
      }
    }
    std::stable_sort(fetches_.begin(), fetches_.end(),
                     [&](const Fetch& a, const Fetch& b) { return Begin(a) < Begin(b); });
  }

  Instant Begin(const Fetch& f) const { return graph().task(f.tasks.front()).recorded_start; }

  // What it takes to make a batch. In a process without workers that is the time in next(). With
  // workers next() only waits: when the step is bound by them, each batch took them one period
  // times their number; otherwise the trace does not say, and there is nothing to gain.
  absl::Status FindWork() {
    std::string_view name = graph().Name(graph().tables().scopes[fetches_[0].scope.index()].name);
    bool many = params_["recorded"] > 0 || name.find("MultiProcessing") != std::string_view::npos;
    if (!many) return absl::OkStatus();
    Duration wait, period = Period();
    for (const Fetch& f : fetches_) wait += f.work;
    wait = wait / static_cast<int64_t>(fetches_.size());
    if (wait <= Duration::FromDouble(2 * params_["next_cost"])) {
      fetches_.clear();
      edit_.changes().notes.push_back(
          "the recorded run has loader workers already, and never waits for them");
      return absl::OkStatus();
    }
    if (params_["recorded"] == 0) {
      return MakeStatus(
          absl::StatusCode::kFailedPrecondition,
          {.code = "E0605",
           .what = "prefetch: the recorded run waits for loader workers, of unknown number",
           .why = "work of loader processes is not part of a trace",
           .fix = "--opt 'prefetch(workers=8,recorded=N)' with the N of the recorded run"});
    }
    for (Fetch& f : fetches_) f.work = period.Scaled(params_["recorded"]);
    return absl::OkStatus();
  }

  // Mean time between two calls of next(), as recorded.
  Duration Period() const {
    if (fetches_.size() < 2) {
      const std::vector<Scope>& scopes = graph().tables().scopes;
      return scopes[fetches_[0].scope.index()].end - scopes[fetches_[0].scope.index()].begin;
    }
    return (Begin(fetches_.back()) - Begin(fetches_.front())) /
           static_cast<int64_t>(fetches_.size() - 1);
  }

  // How many workers work at once on average while the step runs without its wait, at most one:
  // how much more one disturbs than the next was not measured.
  double BusyWorkers() const {
    if (fetches_.empty()) return 0;
    Duration work;
    for (const Fetch& f : fetches_) work += f.work;
    work = work / static_cast<int64_t>(fetches_.size());
    Duration rest = std::max(Period() - work, Duration::Ns(1));
    return std::min(1.0, static_cast<double>(work.ns) / static_cast<double>(rest.ns));
  }

  void Slow(double busy) {
    if (busy == 0) return;
    double host = 1 + params_["host_slowdown"] * busy, gpu = 1 + params_["gpu_slowdown"] * busy;
    double copy = 1 + params_["copy_slowdown"] * busy;
    std::vector<TaskId> host_tasks, kernels, copies;
    for (size_t i = 0; i < graph().size(); ++i) {
      TaskId t(i);
      const Task& task = graph().task(t);
      if (task.removed) continue;
      if (IsHost(task.kind) && !loader_.Around(task.scope).valid()) host_tasks.push_back(t);
      if (task.kind == TaskKind::kKernel) kernels.push_back(t);
      const CopyDetail* d = task.kind == TaskKind::kMemcpy ? graph().Copy(t) : nullptr;
      if (d != nullptr && (d->from == Memory::kPageable || d->to == Memory::kPageable)) {
        copies.push_back(t);
      }
    }
    edit_.BeginCause("workers slow the host");
    if (host != 1) {
      edit_.Scale(host_tasks, host);
      for (TaskId t : host_tasks) {
        Duration gap = graph().task(t).gap;
        if (gap > Duration{}) edit_.SetGap(t, gap.Scaled(host));
      }
    }
    edit_.BeginCause("workers slow copies and kernels");
    if (gpu != 1) edit_.Scale(kernels, gpu);
    if (copy != 1) edit_.Scale(copies, copy);
  }

  // Batch k is made by worker k mod n. A worker gets a new order when a batch is received, so
  // batch k begins no earlier than the return of next() number k - ahead * n. The window starts
  // in a steady state: workers are through with parts of their first batches.
  void MoveToWorkers() {
    edit_.BeginCause("loading overlaps with the step");
    const size_t n = static_cast<size_t>(params_["workers"]);
    const size_t ahead = n * static_cast<size_t>(params_["ahead"]);
    std::vector<LaneId> lanes;
    for (size_t i = 0; i < std::min(n, fetches_.size()); ++i) {
      lanes.push_back(edit_.NewLane(fmt::format("loader worker {}", i), LaneKind::kChannel));
    }
    NameId batch = edit_.graph().AddName("(worker makes a batch)");
    NameId wait_name = edit_.graph().AddName("(waits for a loader worker)");
    std::vector<TaskId> received;
    for (size_t k = 0; k < fetches_.size(); ++k) {
      const Fetch& f = fetches_[k];
      Duration work = f.work;
      if (k < n) work = work.Scaled(static_cast<double>(k) / static_cast<double>(n));
      const Task first = graph().task(f.tasks.front());
      TaskId made = edit_.Append({.duration = work,
                                  .name = batch,
                                  .lane = lanes[k % n],
                                  .scope = f.scope,
                                  .step = first.step,
                                  .kind = TaskKind::kData,
                                  .phase = Phase::kData});
      if (k >= ahead) edit_.AddEdge(received[k - ahead], made);
      TaskId wait = edit_.InsertBefore(f.tasks.front(), {.recorded_start = first.recorded_start,
                                                         .name = wait_name,
                                                         .lane = first.lane,
                                                         .scope = f.scope,
                                                         .layer = first.layer,
                                                         .step = first.step,
                                                         .kind = TaskKind::kWait,
                                                         .phase = Phase::kData});
      edit_.AddEdge(made, wait, {}, Rule::kTransform, Anchor::kEnd, Anchor::kEnd);
      Replace(f);
      received.push_back(wait);
    }
  }

  // What is left of next() on the host.
  void Replace(const Fetch& f) {
    Duration cost = std::min(Duration::FromDouble(params_["next_cost"]), f.work);
    for (TaskId t : f.tasks) {
      edit_.SetDuration(t, t == f.tasks.front() ? cost : Duration{});
      const Task& task = graph().task(t);
      if (loader_.OwnsGapOf(task) && task.gap != Duration{}) edit_.SetGap(t, {});
    }
  }

  const Params& params_;
  Editor& edit_;
  LoaderScopes loader_;
  std::vector<Fetch> fetches_;
};

absl::Status Run(const Params& params, Editor& edit) { return Prefetch(params, edit).Run(); }

}  // namespace

constinit const Transform kPrefetch = {
    .name = "prefetch",
    .summary = "Worker processes make the batches while the step runs",
    .params = kParams,
    .apply = &Run,
    .model =
        "The host work inside of the loader's next() moves to `workers` lanes: batch k is "
        "made by worker k mod workers, at most `ahead` batches per worker in advance, and "
        "next() waits for its batch, then costs `next_cost`. While workers are busy they "
        "slow the rest of the host, copies from pageable memory and, a little, kernels.",
    .ignores =
        "Start of the workers, shortage of cores or of disk bandwidth when many of them "
        "work, uneven batches beyond those recorded.",
    .sources =
        "PyTorch documentation, torch.utils.data; DS-Analyzer (VLDB'21) for loading that "
        "overlaps with compute; slowdowns measured on two pairs of traces",
};

}  // namespace daydream
