#include "transforms/parallel/spread_params.h"

#include <algorithm>
#include <cmath>

#include "transforms/parallel/fabric_choice.h"

namespace daydream {
uint64_t BucketBytes(double bytes) {
  const double megabytes = bytes / 1e6;
  const bool whole = megabytes >= 1 && megabytes == std::floor(megabytes);
  return static_cast<uint64_t>(whole ? megabytes * (1 << 20) : bytes);
}

absl::StatusOr<DataParallel> DataParallelOf(const Params& params, Sharding sharding) {
  DataParallel how{.ranks = static_cast<int>(params["ranks"]), .sharding = sharding};
  how.caps.other = BucketBytes(params["bucket"]);
  // The first bucket is never larger than the others.
  how.caps.first = std::min(how.caps.first, how.caps.other);
  how.overlap = params.text("overlap") == "yes";
  how.bucket_view = params.text("bucket_view") == "yes";
  how.buffers = params.text("buffers") == "yes";
  how.wire_bytes = params.text("compress") == "none" ? 0 : 2;
  if (how.ranks > 1 || !params.text("fabric").empty()) {
    DD_ASSIGN_OR_RETURN(how.fabric, ChooseFabric(params.text("fabric")));
  }
  return how;
}

}  // namespace daydream
