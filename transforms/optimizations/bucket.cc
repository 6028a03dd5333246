// bucket: the gradients that a trace exchanges, in buckets of another size, or after backward.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/median.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/data_parallel.h"
#include "transforms/parallel/exchange.h"
#include "transforms/parallel/gradients.h"
#include "transforms/parallel/spread_params.h"

namespace daydream {
namespace {

constexpr ParamSpec kBucketParams[] = {
    BucketSizeParam("size"),
    kOverlapParam,
    kExchangeFabricParam,
};

// What is exchanged in a step are the gradients of that step, up to this share.
constexpr double kSameBytes = 0.001;

absl::Status CheckBytes(const Exchanges& x, const GradientList& gradients,
                        std::map<uint16_t, TaskId>& after) {
  std::map<uint16_t, double> sent;
  for (const Exchange& e : x.all) {
    if (e.kind == CollectiveKind::kAllReduce) sent[e.step] += static_cast<double>(e.bytes);
  }
  for (const StepGradients& step : gradients.steps) {
    const auto known = sent.find(step.step);
    if (known == sent.end()) continue;
    double bytes = 0;
    for (const Gradient& g : step.ready) bytes += static_cast<double>(g.size.bytes());
    if (std::fabs(known->second / bytes - 1) <= kSameBytes) {
      after[step.step] = TaskId();
      continue;
    }
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition,
        {.code = "E0815",
         .what = "the sizes of the gradients are not known",
         .why = fmt::format("gradients of {:.1f} MB are ready in a step, and {:.1f} MB are "
                            "exchanged",
                            bytes * 1e-6, known->second * 1e-6),
         .fix = "record a training step with record_shapes=True"});
  }
  return absl::OkStatus();
}

// Removes the recorded exchanges of gradients, notes what follows the last one of each step, and
// returns how long their launches took.
std::vector<Duration> RemoveExchanges(const Exchanges& x, Editor& edit, BucketsAnew& anew) {
  std::vector<Duration> launches;
  for (const Exchange& e : x.all) {
    const auto changed = anew.after.find(e.step);
    if (changed == anew.after.end() || e.kind != CollectiveKind::kAllReduce) continue;
    launches.push_back(edit.graph().task(e.call).duration);
    changed->second = e.after;
    edit.RemoveWithLaunches({&e.collective, 1});
  }
  return launches;
}

absl::Status RunBucket(const Params& params, Editor& edit) {
  edit.BeginCause("gradients in other buckets");
  DD_ASSIGN_OR_RETURN(Exchanges x, Exchanges::Find(edit, params.text("fabric")));
  DD_ASSIGN_OR_RETURN(const GradientList gradients, FindGradients(edit.graph()));
  BucketsAnew anew;
  DD_RETURN_IF_ERROR(CheckBytes(x, gradients, anew.after));
  const int ranks = x.all.front().ranks;
  anew.time = [&](CollectiveKind kind, double bytes) { return x.TimeOf(kind, bytes, ranks); };
  std::vector<Duration> launches = RemoveExchanges(x, edit, anew);
  if (launches.empty()) return absl::OkStatus();
  anew.launch = Median(launches);
  const auto cap = BucketBytes(params["size"]);
  const BucketCaps caps{.first = std::min(BucketCaps{}.first, cap), .other = cap};
  DD_RETURN_IF_ERROR(SpreadOver(
      edit,
      {.ranks = ranks, .caps = caps, .overlap = params.text("overlap") == "yes", .anew = &anew}));
  x.Finish();
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kBucket = {
    .name = "bucket",
    .summary = "Gradients that are exchanged already, in buckets of another size",
    .params = kBucketParams,
    .apply = &RunBucket,
    .model =
        "The recorded exchanges go, and buckets of the new size come, filled as "
        "DistributedDataParallel fills them. Each is launched behind the hook of the gradient that "
        "closes it, starts 1.7 us after its launch, the compute before it and the bucket before "
        "it, and takes what transfers of the trace say of its size, or the fabric. Gradients are "
        "copied back, and the optimizer starts, as recorded, once their bucket is there.",
    .ignores =
        "Waits for other ranks that were recorded in the exchanges, unless ranks are played "
        "together. How much buckets slow compute down follows what was recorded.",
    .sources = "PyTorch torch/csrc/distributed/c10d/reducer.cpp, as for ddp; docs/ranks.md",
    .advice = {.effort = "1 number", .risk = "none", .how = {}},
    .memory = MemoryEffect::kNone,
    .memory_model = "None: buckets hold the same gradients.",
};

}  // namespace daydream
