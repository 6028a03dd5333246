// jitter: ranks differ in speed, by chance and for good.
#include <cmath>

#include <fmt/format.h>

#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/jitter.h"
#include "transforms/parallel/rank_work.h"

namespace daydream {
namespace {

constexpr ParamSpec kJitterParams[] = {
    {.name = "sd",
     .unit = Unit::kShare,
     .fallback = kUsualJitter,
     .low = 0.01,
     .high = 0.03,
     .max = 0.5,
     .help = "standard deviation between ranks, as a share of their work",
     .source = "1.8 % between the own cycles of eight recorded ranks (host bound, one node); chips "
               "of one model are 1 to 3 % apart"},
    {.name = "seed",
     .max = 1e9,
     .help = "another one draws other speeds",
     .source = "chosen by the user",
     .whole = true},
    {.name = "ranks",
     .fallback = 1,
     .min = 1,
     .max = 1 << 20,
     .help = "play the slowest of so many, in the mean of all draws; ddp(n) beside it says n",
     .source = "chosen by the user",
     .whole = true},
};

// What collectives wait for, where one rank stands for all of them.
absl::Status PlaySlowest(double sd, double ranks, Editor& edit) {
  const double factor = 1 + sd * MaximumOf(static_cast<int64_t>(ranks)).mean;
  edit.BeginCause("the slowest rank");
  edit.changes().notes.push_back(
      fmt::format("the slowest of {:.0f} ranks takes {:.2f} % longer in the mean of all draws: one "
                  "seed gives what another does",
                  ranks, 100 * (factor - 1)));
  ScaleRank(edit, factor, factor);
  return absl::OkStatus();
}

absl::Status RunJitter(const Params& params, Editor& edit) {
  if (params["ranks"] > 1) return PlaySlowest(params["sd"], params["ranks"], edit);
  const double factor =
      JitterOf(static_cast<uint64_t>(params["seed"]), RankOf(edit.graph()), params["sd"]);
  edit.BeginCause("ranks differ in speed");
  ScaleRank(edit, factor, factor);
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kJitter = {
    .name = "jitter",
    .summary = "Ranks differ in speed by chance",
    .params = kJitterParams,
    .stated_by_user = true,
    .apply = &RunJitter,
    .model =
        "All own work of each rank, host and GPU, takes 1 + sd x z times as long, where z is drawn "
        "from a normal distribution for the rank and the seed: the same draw on every machine. "
        "The slowest of n is what collectives wait for. Ranks that are played together are drawn "
        "15 times, and the answer is the draw with the middle step; one rank alone is drawn once. "
        "Where one rank stands for n, beside ddp(n) or with ranks=n, it is the slowest of them: "
        "1 + sd x e(n), the largest of n draws in the mean.",
    .ignores = "What changes from step to step, and from kernel to kernel.",
    .sources = "own cycles of eight recorded ranks: docs/ranks.md",
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
