// straggler: one rank is slower, or one that was slow is mended.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/rank_work.h"

namespace daydream {
namespace {

constexpr ParamSpec kStragglerParams[] = {
    {.name = "rank",
     .max = 1 << 20,
     .help = "number of the rank",
     .source = "chosen by the user",
     .required = true,
     .whole = true},
    {.name = "host",
     .unit = Unit::kFactor,
     .fallback = 1,
     .max = 1000,
     .help = "how many times as long its host work takes: 0.9x is a faster host, 1.5x a slower one",
     .source = "chosen by the user"},
    {.name = "gpu",
     .unit = Unit::kFactor,
     .fallback = 1,
     .max = 1000,
     .help = "the same of its GPU work, without collectives",
     .source = "chosen by the user"},
};

absl::Status RunStraggler(const Params& params, Editor& edit) {
  const auto rank = static_cast<int32_t>(params["rank"]);
  if (RankOf(edit.graph()) != rank) {
    edit.changes().notes.push_back(
        fmt::format("this is rank {}, not {}", RankOf(edit.graph()), rank));
    return absl::OkStatus();
  }
  edit.BeginCause(fmt::format("rank {} works at another speed", rank));
  ScaleRank(edit, params["host"], params["gpu"]);
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kStraggler = {
    .name = "straggler",
    .summary = "One rank works faster or slower",
    .params = kStragglerParams,
    .stated_by_user = true,
    .apply = &RunStraggler,
    .model =
        "All own work of the rank takes so many times as long: on its host with the time between "
        "calls, on its GPU without collectives. Collectives follow: where the ranks of a run are "
        "played together, the others wait for its arrival, or no longer do.",
    .ignores = "Why it is slow: heat, power, another program, its share of the data.",
    .sources = "what-ifs on eight recorded ranks: docs/ranks.md",
    .twice = "",
    .memory = MemoryEffect::kNone,
    .memory_model = "None: only times change.",
};

}  // namespace daydream
