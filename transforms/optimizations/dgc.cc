// dgc: deep gradient compression, only the largest gradients cross the network.
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/parallel/exchange.h"

namespace daydream {
namespace {

// A value and its index.
constexpr double kEntryBytes = 8;
// Accumulate what was not sent, sample for a threshold, select.
constexpr double kPasses = 3;

constexpr ParamSpec kDgcParams[] = {
    {.name = "density",
     .unit = Unit::kShare,
     .fallback = 0.001,
     .low = 0.001,
     .high = 0.01,
     .min = 1e-6,
     .max = 1,
     .help = "share of the gradients that is sent",
     .source = "Lin et al. 2018: 0.1 % after a warm-up"},
    kExchangeFabricParam,
};

absl::Status RunDgc(const Params& params, Editor& edit) {
  edit.BeginCause("only the largest gradients are exchanged");
  DD_ASSIGN_OR_RETURN(Exchanges exchanges, Exchanges::Find(edit, params.text("fabric")));
  double sent = 0, whole = 0;
  for (Exchange& e : exchanges.all) {
    const auto bytes = static_cast<double>(e.bytes);
    const double chosen = std::max(1.0, params["density"] * static_cast<double>(e.elements()));
    const double gathered = chosen * kEntryBytes * e.ranks;
    exchanges.KernelBefore(e, "accumulate and select gradients",
                           exchanges.Moves(e, kPasses * bytes));
    DD_RETURN_IF_ERROR(exchanges.Resize(e, CollectiveKind::kAllGather, gathered));
    exchanges.KernelAfter(e, "add selected gradients", exchanges.Moves(e, bytes + gathered));
    sent += chosen * kEntryBytes, whole += bytes;
  }
  edit.changes().notes.push_back(
      fmt::format("each rank sends {:.3g} times fewer bytes and gathers "
                  "those of all others",
                  whole / std::max(sent, 1.0)));
  edit.changes().memory.push_back({.what = "gradients that were not sent yet",
                                   .bytes = static_cast<int64_t>(exchanges.GradientBytes()),
                                   .estimate = true});
  exchanges.Finish();
  return absl::OkStatus();
}

}  // namespace

constinit const Transform kDgc = {
    .name = "dgc",
    .summary = "Deep gradient compression: only the largest gradients are exchanged",
    .params = kDgcParams,
    .apply = &RunDgc,
    .model =
        "Each bucket's all-reduce becomes an all-gather of the selected gradients of every rank, 8 "
        "bytes each (value and index): it grows with the number of ranks. Before it kernels pass "
        "three times over the bucket (accumulate, sample for a threshold, select); after it what "
        "was gathered is added into an empty bucket.",
    .ignores =
        "What it does to training, the warm-up with higher densities, momentum correction and "
        "clipping (more passes), and selections of different size on different ranks.",
    .sources =
        "Lin et al. 2018 (Deep Gradient Compression, ICLR), section 3; fabrics: "
        "docs/ranks.md",
    .memory = MemoryEffect::kAdds,
    .memory_model = "A copy of all gradients: what was not sent yet.",
};

}  // namespace daydream
