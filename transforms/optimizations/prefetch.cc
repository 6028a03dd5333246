// prefetch: moves the work of making batches from the program's thread to lanes of workers.
#include <algorithm>
#include <cmath>

#include "graph/stalled_time.h"
#include "transforms/analysis/loader.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr size_t kMostWorkers = 256;
constexpr double kNotWorthMore = 0.005;  // of the rest of a step: what `advise` leaves out, too

constexpr ParamSpec kPrefetchParams[] = {
    {.name = "workers",
     .unit = Unit::kNone,
     .fallback = 4,
     .min = 1,
     .max = kMostWorkers,
     .help = "loader processes (num_workers)",
     .source = "chosen by the user",
     .whole = true},
    {.name = "recorded",
     .unit = Unit::kNone,
     .fallback = 0,
     .max = 256,
     .help = "loader processes of the recorded run; 0 = told from the trace",
     .source = "known to whoever recorded the trace",
     .whole = true},
    kNextCostParam,
    {.name = "ahead",
     .unit = Unit::kNone,
     .fallback = 2,
     .min = 1,
     .max = 1024,
     .help = "batches each worker prepares ahead (prefetch_factor)",
     .source = "PyTorch documentation, torch.utils.data.DataLoader: default 2",
     .whole = true},
    {.name = "cores",
     .unit = Unit::kNone,
     .fallback = 0,
     .max = 4096,
     .help = "host cores for the workers and the step; 0 = enough",
     .source = "known to whoever runs it (nproc); traces do not hold it"},
    {.name = "step_cores",
     .unit = Unit::kNone,
     .fallback = 1,
     .low = 1,
     .high = 2,
     .max = 4096,
     .help = "cores that the step itself keeps busy on average",
     .source = "PyTorch: the main thread and the one of the backward pass take turns; waiting for "
               "the GPU spins"},
    {.name = "host_slowdown",
     .unit = Unit::kShare,
     .fallback = 0,
     .low = 0,
     .high = 0.3,
     .max = 10,
     .help = "how much a busy worker slows other host work",
     .source = "none assumed; the range is what two pairs showed: docs/optimizations/prefetch.md"},
    {.name = "copy_slowdown",
     .unit = Unit::kShare,
     .fallback = 0,
     .low = 0,
     .high = 1.5,
     .max = 10,
     .help = "how much a busy worker slows copies from pageable memory",
     .source = "none assumed; the range is what two pairs showed: docs/optimizations/prefetch.md"},
    {.name = "gpu_slowdown",
     .unit = Unit::kShare,
     .fallback = 0,
     .low = 0,
     .high = 0.04,
     .max = 10,
     .help = "how much a busy worker slows kernels",
     .source = "none assumed; the range is what two pairs showed: docs/optimizations/prefetch.md"},
};

class Prefetch {
 public:
  Prefetch(const Params& params, Editor& edit)
      : params_(params), edit_(edit), loader_(edit.graph()) {}

  absl::Status Run() {
    if (params_["cores"] > 0 && params_["cores"] < 1) {
      return MakeStatus(
          absl::StatusCode::kInvalidArgument,
          {.code = "E0103",
           .what = fmt::format("prefetch: cores = {:g} is out of range (1 to 4096, or "
                               "0 for enough)",
                               params_["cores"]),
           .fix = "daydream opt show prefetch"});
    }
    fetches_ = FindFetches(graph(), loader_);
    if (fetches_.empty()) {
      edit_.changes().notes.push_back("no range named after a DataLoader in this trace");
      return absl::OkStatus();
    }
    DD_RETURN_IF_ERROR(FindWork());
    if (!fetches_.empty()) TellRates();
    Slow(BusyWorkers());
    ShareCores();
    MoveToWorkers();
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // What it takes to make a batch. In a process without workers that is the time in next(). With
  // workers next() only waits: when the step is bound by them, their number and the returns of
  // next() tell; otherwise more workers bring nothing, and what fewer bring the trace does not say.
  absl::Status FindWork() {
    if (params_["recorded"] > 0 && HasNoWorkers(graph(), fetches_[0])) {
      return MakeStatus(
          absl::StatusCode::kInvalidArgument,
          {.code = "E0103",
           .what = fmt::format("prefetch: recorded = {:g}, but the recorded run has no "
                               "loader workers",
                               params_["recorded"]),
           .why = "its loader is PyTorch's for a single process",
           .fix = "--opt 'prefetch(workers=8)'"});
    }
    if (params_["recorded"] == 0 && !HasWorkers(graph(), fetches_[0])) return absl::OkStatus();
    made_ =
        edit_.Select([](const Graph& g, TaskId t) { return g.task(t).kind == TaskKind::kData; });
    if (const auto few = FindFewWaits(graph(), fetches_); few && few->count > 0) {
      return MakeStatus(
          absl::StatusCode::kFailedPrecondition,
          {.code = "E0605",
           .what = fmt::format("prefetch: the recorded run waits for its loader workers in {} only",
                               few->count == 1 ? "one step" : "two steps"),
           .why = "whether they are that slow, or batches came late, so few waits do not tell",
           .fix = "record more steps"});
    }
    if (made_.empty() && FindsBatchesReady(graph(), fetches_)) {
      DD_RETURN_IF_ERROR(CheckNotFewer());
      edit_.changes().notes.push_back("the recorded run has loader workers already, and " +
                                      HowOften());
      fetches_.clear();
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
    WorkOfWorkers();
    return absl::OkStatus();
  }

  std::string HowOften() const {
    const auto waited = [&](const Fetch& f) { return Counts(graph(), f) && Waited(graph(), f); };
    const std::string_view often = std::ranges::any_of(fetches_, waited) ? "hardly ever" : "never";
    return fmt::format("{} waits for them", often);
  }

  // Workers that never kept the step waiting may be more than it takes, and how many it takes is
  // not known.
  absl::Status CheckNotFewer() const {
    const double recorded = params_["recorded"];
    if (recorded > 0 && params_["workers"] >= recorded) return absl::OkStatus();
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0605",
         .what = recorded > 0
                     ? fmt::format("prefetch: workers = {:g} instead of {:g} cannot be judged",
                                   params_["workers"], recorded)
                     : fmt::format("prefetch: the recorded run has loader workers, of unknown "
                                   "number, and {}; fewer cannot be judged",
                                   HowOften()),
         .why = "how long a batch takes is not in this trace",
         .fix = recorded > 0 ? "record a run with fewer workers, or with num_workers=0"
                             : "--opt 'prefetch(workers=8,recorded=N)' with the N of the recorded "
                               "run: as many or more change nothing"});
  }

  // What a batch took the recorded workers on average.
  Duration TypicalWork() const {
    const Duration every = rate_ ? rate_->batch : FetchPeriod(graph(), fetches_);
    return every.Scaled(params_["recorded"] * WorkLeft());
  }

  // What an optimization before took off the waits for workers, it took off their work.
  double WorkLeft() const {
    Duration recorded, now;
    if (made_.size() > 1) {
      for (size_t k = 0; k + 1 < made_.size(); ++k) now += graph().task(made_[k]).duration;
      const auto began = [&](TaskId t) {
        return graph().stalled_time().Steady(graph().task(t).recorded_start);
      };
      recorded = began(made_.back()) - began(made_.front());
      return recorded > Duration{} ? now.seconds() / recorded.seconds() : 1;
    }
    for (const Fetch& f : fetches_) recorded += RecordedLength(graph(), f), now += f.work;
    const Duration all = FetchPeriod(graph(), fetches_) * static_cast<int64_t>(fetches_.size());
    return all > Duration{} ? std::max(1 - (recorded - now).seconds() / all.seconds(), 0.0) : 1;
  }

  // A worker makes its batches one after the other, and a call that waited tells when its batch was
  // ready; played again with as many workers, it returns when it did. A batch that lay ready took
  // no longer than typical.
  void WorkOfWorkers() {
    const auto n = static_cast<size_t>(params_["recorded"]);
    const size_t ahead = n * static_cast<size_t>(params_["ahead"]);
    rate_ = FindLoaderRate(graph(), fetches_);
    const Duration typical = TypicalWork();
    const double left = WorkLeft();
    const Instant origin = FirstStart();
    std::vector<Instant> received;
    for (size_t k = 0; k < fetches_.size(); ++k) {
      Fetch& f = fetches_[k];
      const Instant called = Called(graph(), f);
      const bool waited = Waited(graph(), f);
      const Duration cost = Duration::FromDouble(params_["next_cost"]);
      const Instant at = waited ? Returned(graph(), f) - cost : called;
      received.push_back(std::max(at, called));
      Instant ordered = origin;
      if (k >= n) ordered = ready_[k - n];
      if (k >= ahead) ordered = std::max(ordered, received[k - ahead]);
      Instant ready = received[k];
      if (!waited && k >= n) ready = std::min(ready, ordered + typical);
      if (!waited && k < n && k > 0) {
        ready = std::min(ready, ready_[k - 1] + typical / static_cast<int64_t>(n));
      }
      ready_.push_back(ready);
      f.work = k < n ? typical : (ready - ordered).Scaled(left);
    }
    for (Instant& ready : ready_) ready = Instant::AtNs(0) + (ready - origin);
    if (OtherWorkers()) KeepToRate(typical);
  }

  bool OtherWorkers() const { return params_["workers"] != params_["recorded"]; }

  // Of other workers only the rate of the recorded ones is known.
  void KeepToRate(Duration typical) {
    if (!rate_ || rate_->lay_ready == 0) return;
    for (Fetch& f : fetches_) f.work = typical;
  }

  Instant FirstStart() const {
    Instant first = graph().task(fetches_[0].tasks.front()).recorded_start;
    for (const Task& task : graph().tasks()) {
      if (!task.removed) first = std::min(first, task.recorded_start);
    }
    return graph().stalled_time().Steady(first);
  }

  // What worker `k` of `n` still has to do for its first batch when the window starts: workers are
  // spread evenly, or as the recorded ones were.
  Duration Remaining(size_t k, size_t n) const {
    const double share = static_cast<double>(k) / static_cast<double>(n);
    if (ready_.empty()) return fetches_[k].work.Scaled(share);
    const double place = share * params_["recorded"];
    const size_t before = std::min(static_cast<size_t>(place), ready_.size() - 1);
    const size_t after = std::min(before + 1, ready_.size() - 1);
    return (ready_[before] - Instant::AtNs(0)) +
           (ready_[after] - ready_[before]).Scaled(place - std::floor(place));
  }

  // How many workers work at once on average while the step runs without its wait.
  double BusyWorkers() const {
    if (fetches_.empty()) return 0;
    Duration work;
    for (const Fetch& f : fetches_) work += f.work;
    work = work / static_cast<int64_t>(fetches_.size());
    const Duration rest = std::max(RestOfStep(graph(), fetches_), Duration::Ns(1));
    return std::min(params_["workers"],
                    static_cast<double>(work.ns) / static_cast<double>(rest.ns));
  }

  // Cores do a fixed amount of work in a step: a batch and what the step itself keeps busy. Where
  // that takes longer than the slower of loader and step, both are stretched to it, yet never
  // beyond doing one after the other.
  void ShareCores() {
    const double cores = params_["cores"];
    if (cores == 0 || fetches_.empty()) return;
    Duration work;
    for (const Fetch& f : fetches_) work += f.work;
    work = work / static_cast<int64_t>(fetches_.size());
    const Duration rest = RestOfStep(graph(), fetches_);
    const Duration alone = std::max(rest, work.Scaled(1 / params_["workers"]));
    const Duration busy = work + rest.Scaled(params_["step_cores"]);
    const Duration serial = work + rest - Duration::FromDouble(params_["next_cost"]);
    const Duration shared = std::min(busy.Scaled(1 / cores), serial);
    if (shared <= alone || alone <= Duration{}) return;
    const double stretch = shared.seconds() / alone.seconds();
    edit_.BeginCause("workers and the step share the cores");
    for (Fetch& f : fetches_) f.work = f.work.Scaled(stretch);
    ScaleHost(stretch);
    edit_.changes().notes.push_back(fmt::format(
        "{:g} cores for {:.1f} ms of work in a step: host work takes {:.2f} times as long", cores,
        busy.ms(), stretch));
  }

  // DS-Analyzer's question: who is slower, the loader or the rest?
  void TellRates() {
    if (!edit_.keeps_notes()) return;  // who keeps up is played
    if (!ready_.empty() && !OtherWorkers()) {
      edit_.changes().notes.push_back(
          "as many workers as were recorded hand over batches as they did");
      return;
    }
    Duration work, longest;
    int64_t counted = 0;
    for (const Fetch& f : fetches_) {
      if (!Counts(graph(), f)) continue;
      work += f.work, longest = std::max(longest, f.work), ++counted;
    }
    work = work / std::max<int64_t>(counted, 1);
    const Duration rest = RestOfStep(graph(), fetches_);
    const double workers = params_["workers"];
    edit_.changes().notes.push_back(fmt::format(
        "a batch takes {:.1f} ms to make (at most {:.1f}), so {:g} worker{} over every {:.1f} ms; "
        "the rest of a recorded step took {:.1f} ms: {}",
        work.ms(), longest.ms(), workers, workers == 1 ? " hands one" : "s hand one",
        work.ms() / workers, rest.ms(), WhoKeepsUp(work, rest)));
  }

  // By what batches took and in the order in which they came; fewer than their mean asks for need
  // not be tried.
  std::string WhoKeepsUp(Duration work, Duration rest) const {
    const auto ahead = static_cast<size_t>(params_["ahead"]);
    const auto workers = static_cast<size_t>(params_["workers"]);
    const auto waits = [&](size_t n) { return WaitForWorkers(graph(), fetches_, n, ahead); };
    const Duration nothing = rest.Scaled(kNotWorthMore), most = rest + nothing;
    size_t enough = kMostWorkers + 1;
    if (work < most * static_cast<int64_t>(kMostWorkers)) {
      enough = std::max<size_t>(static_cast<size_t>(std::ceil(work.seconds() / most.seconds())), 1);
      while (enough <= kMostWorkers && waits(enough) > nothing) ++enough;
    }
    const std::string many = enough == 1 ? "one keeps up" : fmt::format("{} keep up", enough);
    if (enough <= workers) return many + ", more change nothing";
    const std::string wait =
        fmt::format("a step waits {:.1f} ms for them on average", waits(workers).ms());
    return enough <= kMostWorkers ? fmt::format("{}; {}", wait, many) : wait;
  }

  void ScaleHost(double factor) {
    std::vector<TaskId> tasks;
    for (size_t i = 0; i < graph().size(); ++i) {
      const Task& task = graph().task(TaskId(i));
      if (!task.removed && IsHost(task.kind) && !loader_.Around(task.scope).valid()) {
        tasks.push_back(TaskId(i));
      }
    }
    edit_.Scale(tasks, factor);
    for (TaskId t : tasks) {
      const Duration gap = graph().task(t).gap;
      if (gap > Duration{}) edit_.SetGap(t, gap.Scaled(factor));
    }
  }

  // What one busy worker does to others was only seen for less than one, so more count as one.
  void Slow(double busy) {
    if (busy == 0) return;
    busy = std::min(busy, 1.0);
    double host = 1 + params_["host_slowdown"] * busy, gpu = 1 + params_["gpu_slowdown"] * busy;
    double copy = 1 + params_["copy_slowdown"] * busy;
    std::vector<TaskId> kernels, copies;
    for (size_t i = 0; i < graph().size(); ++i) {
      TaskId t(i);
      const Task& task = graph().task(t);
      if (task.removed) continue;
      if (task.kind == TaskKind::kKernel) kernels.push_back(t);
      const CopyDetail* d = task.kind == TaskKind::kMemcpy ? graph().Copy(t) : nullptr;
      if (d != nullptr && (d->from == Memory::kPageable || d->to == Memory::kPageable)) {
        copies.push_back(t);
      }
    }
    edit_.BeginCause("workers slow the host");
    if (host != 1) ScaleHost(host);
    edit_.BeginCause("workers slow copies and kernels");
    if (gpu != 1) edit_.Scale(kernels, gpu);
    if (copy != 1) edit_.Scale(copies, copy);
  }

  // Other workers than recorded have nothing ready that was made while no step that counts ran: a
  // longer run could not live on it. From the first call that counts on they hand over a batch a
  // period. That call waits, too.
  bool BeginsAnew(size_t k, size_t n) const {
    if (!rate_ || rate_->lay_ready == 0 || !OtherWorkers()) return false;
    const size_t first = rate_->first;
    return k >= first && k < first + n && graph().task(CallOf(first)).lane_prev.valid();
  }
  TaskId CallOf(size_t k) const { return fetches_[k].tasks.front(); }

  // Batch k is made by worker k mod n. A worker gets a new order when a batch is received, so
  // batch k begins no earlier than the return of next() number k - ahead * n. The window starts
  // in a steady state: workers are through with parts of their first batches.
  void MoveToWorkers() {
    edit_.BeginCause("loading overlaps with the step");
    for (TaskId t : made_) edit_.SetDuration(t, {});  // by the recorded workers
    const size_t n = static_cast<size_t>(params_["workers"]);
    const size_t ahead = n * static_cast<size_t>(params_["ahead"]);
    std::vector<LaneId> lanes;
    for (size_t i = 0; i < std::min(n, fetches_.size()); ++i) {
      lanes.push_back(edit_.NewLane(fmt::format("loader worker {}", i), LaneKind::kChannel));
    }
    NameId batch = edit_.graph().AddName("(worker makes a batch)");
    NameId wait_name = edit_.graph().AddName("(waits for a loader worker)");
    std::vector<TaskId> received;
    TaskId anew;
    for (size_t k = 0; k < fetches_.size(); ++k) {
      const Fetch& f = fetches_[k];
      Duration work = k < n ? Remaining(k, n) : f.work;
      if (BeginsAnew(k, n)) {
        if (k == rate_->first) anew = graph().task(CallOf(k)).lane_prev;
        const Duration period = f.work.Scaled(1 / params_["workers"]);
        work = std::max(period - rate_->shortest_rest, Duration{}) +
               period * static_cast<int64_t>(k - rate_->first);
      }
      const Task first = graph().task(f.tasks.front());
      TaskId made = edit_.Append({.duration = work,
                                  .name = batch,
                                  .lane = lanes[k % n],
                                  .scope = f.scope,
                                  .step = first.step,
                                  .kind = TaskKind::kData,
                                  .phase = Phase::kData});
      if (BeginsAnew(k, n)) edit_.AddEdge(anew, made, graph().task(anew).gap);
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
    if (!ready_.empty() && !Waited(graph(), f)) return;  // it is what receiving a batch takes
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
  std::vector<TaskId> made_;  // batches of the recorded workers, where the step waited for them
  std::optional<LoaderRate> rate_;  // of recorded workers
  std::vector<Instant> ready_;  // of recorded workers: when each batch was, from the first task on
};

absl::Status RunPrefetch(const Params& params, Editor& edit) {
  return Prefetch(params, edit).Run();
}

constexpr Conflict kPrefetchConflicts[] = {{"no-data-wait", "it leaves nothing for workers to do"}};

}  // namespace

constinit const Transform kPrefetch = {
    .name = "prefetch",
    .summary = "Worker processes make the batches while the step runs",
    .params = kPrefetchParams,
    .apply = &RunPrefetch,
    .model =
        "The host work inside of the loader's next() moves to `workers` lanes: batch k is made by "
        "worker k mod workers, at most `ahead` batches per worker in advance, and next() waits for "
        "its batch, then costs `next_cost`. Batches of recorded workers (`recorded`) take what "
        "makes the recorded calls return when they did. So the step runs at the rate of whoever is "
        "slowest: the workers together, the host or the GPU. Where cores are given, a step takes "
        "no less than the work of a batch and its own, spread over them, and no more than one "
        "after the other. Other slowdowns by busy workers are zero unless given; their ranges "
        "widen the interval.",
    .ignores =
        "Start of the workers, shortage of disk bandwidth when many of them read, uneven batches "
        "beyond those recorded.",
    .sources =
        "PyTorch documentation, torch.utils.data; DS-Analyzer (Mohan et al., VLDB 2021): the "
        "slowest of fetching, preparing and computing sets the rate",
    .advice = {.effort = "1 line",
               .risk = "host memory",
               .how = "DataLoader(..., num_workers=4, persistent_workers=True)"},
    .conflicts = kPrefetchConflicts,
    .twice = "the workers make the batches already",
    .memory = MemoryEffect::kNone,
    .memory_model = "None on the GPU: batches wait in host memory.",
};

}  // namespace daydream
