// How PyTorch groups gradients for data parallelism, to the element.
//
// From the second iteration on DistributedDataParallel fills buckets in the order in which
// gradients became ready (torch/csrc/distributed/c10d/reducer.cpp, rebuild_buckets() and
// compute_bucket_assignment_by_size()). A bucket is closed once its bytes reach the cap, so it may
// exceed it; the first one has a cap of its own, so that communication begins early.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace daydream {

struct GradientSize {
  uint64_t elements = 0;
  uint32_t element_bytes = 4;
  // First dimension: as a matrix it has elements / rows columns. 0: shapes were not recorded.
  uint64_t rows = 1;
  uint64_t bytes() const { return elements * element_bytes; }
};

struct BucketCaps {
  uint64_t first = 1 << 20;   // torch.distributed._DEFAULT_FIRST_BUCKET_BYTES
  uint64_t other = 25 << 20;  // bucket_cap_mb=25
};

struct Bucket {
  uint64_t elements = 0, bytes = 0;
  std::vector<uint32_t> gradients;  // rows of what was given, ascending
  // Its collective is launched once this gradient is ready: buckets go out in their order, so an
  // earlier one may hold it up.
  uint32_t launched_after = 0;
};

// `ready`: in the order in which gradients become ready. Gradients of different width never share
// a bucket. O(gradients).
std::vector<Bucket> AssignBuckets(std::span<const GradientSize> ready, const BucketCaps& caps);

}  // namespace daydream
