#include "transforms/parallel/buckets.h"

#include <algorithm>
#include <utility>

namespace daydream {
namespace {

// The bucket that gradients of one width go into, and the cap that closes it.
struct OpenBucket {
  uint32_t element_bytes = 0;
  uint64_t cap = 0;
  Bucket bucket;
};

}  // namespace

std::vector<Bucket> AssignBuckets(std::span<const GradientSize> ready, const BucketCaps& caps) {
  std::vector<Bucket> closed;
  std::vector<OpenBucket> open;
  for (uint32_t i = 0; i < ready.size(); ++i) {
    const uint32_t width = ready[i].element_bytes;
    auto at = std::find_if(open.begin(), open.end(),
                           [&](const OpenBucket& o) { return o.element_bytes == width; });
    if (at == open.end()) at = open.insert(at, {width, caps.first, {}});
    at->bucket.elements += ready[i].elements;
    at->bucket.bytes += ready[i].bytes();
    at->bucket.gradients.push_back(i);
    if (at->bucket.bytes < at->cap) continue;
    closed.push_back(std::exchange(at->bucket, {}));
    at->cap = caps.other;
  }
  for (OpenBucket& o : open) {
    if (!o.bucket.gradients.empty()) closed.push_back(std::move(o.bucket));
  }
  uint32_t last = 0;
  for (Bucket& b : closed) {
    last = std::max(last, b.gradients.back());
    b.launched_after = last;
  }
  return closed;
}

}  // namespace daydream
