// cache: the share of a loader's work that is reading from storage goes.
#include <algorithm>
#include <cmath>

#include "transforms/analysis/loader.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

constexpr ParamSpec kCacheParams[] = {
    {.name = "fetch",
     .unit = Unit::kShare,
     .fallback = 0.5,
     .low = 0,
     .high = 1,
     .max = 1,
     .help = "share of making a batch that is reading it from storage",
     .source = "a guess: traces do not tell reading from decoding. Measured by a second epoch with "
               "the data set in memory (DS-Analyzer's third run)"},
    {.name = "cached",
     .unit = Unit::kShare,
     .fallback = 1,
     .max = 1,
     .help = "share of the data set that fits in memory and is not there yet",
     .source = "size of the data set against free memory"},
    kNextCostParam,
};

class Cache {
 public:
  Cache(const Params& params, Editor& edit) : params_(params), edit_(edit), loader_(edit.graph()) {}

  absl::Status Run() {
    fetches_ = FindFetches(graph(), loader_);
    if (fetches_.empty()) {
      edit_.changes().notes.push_back("no range named after a DataLoader in this trace");
      return absl::OkStatus();
    }
    workers_ = HasWorkers(graph(), fetches_[0]);
    const std::vector<TaskId> made =
        edit_.Select([](const Graph& g, TaskId t) { return g.task(t).kind == TaskKind::kData; });
    if (made.empty() && workers_ && FindsBatchesReady(graph(), fetches_)) {
      edit_.changes().notes.push_back("the recorded run never waits for its loader workers");
      return absl::OkStatus();
    }
    edit_.BeginCause("batches are read from memory");
    const double saved = Saved();
    if (!made.empty()) {
      edit_.Scale(made, 1 - saved);  // batches of prefetch's workers
    } else if (workers_) {
      ShortenWaits(saved);
    } else {
      ShortenWork(saved);
    }
    TellCache(saved);
    return absl::OkStatus();
  }

 private:
  const Graph& graph() const { return edit_.graph(); }

  // Share of making a batch that goes: no more than what is not known to be work on tensors.
  double Saved() {
    // As recorded: prefetch takes the work out of next().
    Duration work, ops;
    for (const Fetch& f : fetches_) {
      work += RecordedLength(graph(), f);
      ops += std::max(f.ops, RecordedOps(graph(), f));
    }
    double fetch = params_["fetch"];
    if (!workers_ && work > Duration{}) {
      const double most = 1 - ops.seconds() / work.seconds();
      if (fetch > most) {
        fetch = most;
        edit_.changes().notes.push_back(
            fmt::format("{} of making a batch is work on tensors and stays",
                        FormatValue(std::round(1e3 * (1 - most)) / 1e3, Unit::kShare)));
      }
    }
    return fetch * params_["cached"];
  }

  // Work on tensors stays; the rest of next() shrinks by what is saved of all of it.
  void ShortenWork(double saved) {
    const std::vector<Scope>& scopes = graph().tables().scopes;
    for (const Fetch& f : fetches_) {
      const double rest = (f.work - f.ops).seconds();
      const double factor = rest > 0 ? std::max(1 - saved * f.work.seconds() / rest, 0.0) : 1;
      for (TaskId t : f.tasks) {
        const Task task = graph().task(t);
        const bool op = scopes[task.scope.index()].kind == EventKind::kOp;
        if (!op) edit_.SetDuration(t, task.duration.Scaled(factor));
        if (loader_.OwnsGapOf(task) && task.gap > Duration{}) {
          edit_.SetGap(t, task.gap.Scaled(factor));
        }
      }
    }
  }

  // Workers that the step waits for hand over a batch each period; reading gone, that much of the
  // period less.
  void ShortenWaits(double saved) {
    const Duration less = FetchPeriod(graph(), fetches_).Scaled(saved);
    const Duration cost = Duration::FromDouble(params_["next_cost"]);
    for (const Fetch& f : fetches_) {
      const Duration then = std::max(std::min(f.work, cost), f.work - less);
      const double factor = f.work > Duration{} ? then.seconds() / f.work.seconds() : 1;
      for (TaskId t : f.tasks) {
        const Task task = graph().task(t);
        edit_.SetDuration(t, task.duration.Scaled(factor));
        if (loader_.OwnsGapOf(task) && task.gap > Duration{}) {
          edit_.SetGap(t, task.gap.Scaled(factor));
        }
      }
    }
  }

  void TellCache(double saved) {
    edit_.changes().notes.push_back(fmt::format(
        "{} of making a batch goes", FormatValue(std::round(1e3 * saved) / 1e3, Unit::kShare)));
    if (!params_.given("fetch")) {
      edit_.changes().warnings.push_back(
          "how much of making a batch is reading is a guess; where the data set is in memory "
          "already, nothing is gained: cache(fetch=...)");
    }
  }

  const Params& params_;
  Editor& edit_;
  LoaderScopes loader_;
  std::vector<Fetch> fetches_;
  bool workers_ = false;
};

absl::Status RunCache(const Params& params, Editor& edit) { return Cache(params, edit).Run(); }

}  // namespace

constinit const Transform kCache = {
    .name = "cache",
    .summary = "The data set is read from memory instead of storage",
    .params = kCacheParams,
    .apply = &RunCache,
    .model =
        "Without loader processes, the part of next() that is reading goes: the share `fetch` of "
        "it, but never what the trace shows to be work on tensors. With loader processes that the "
        "step waits for, each period shrinks by that share of it, until next() finds its batch "
        "ready. Preparing (decoding, augmenting) stays. With prefetch, before or behind it, it "
        "shortens what the workers do.",
    .ignores =
        "The first epoch, which fills the memory; what reading from memory costs; that the "
        "operating system may have had the data in memory already.",
    .sources =
        "DS-Analyzer (Mohan et al., VLDB 2021): fetch and preparation rates from runs with cold "
        "and with full cache",
    .advice = {.effort = "~10 lines",
               .risk = "host memory",
               .how = "copy the data set to /dev/shm, or keep its samples in a shared array"},
    .twice = "the data set is in memory already",
    .memory = MemoryEffect::kNone,
    .memory_model = "None on the GPU: the data set is in host memory.",
};

}  // namespace daydream
