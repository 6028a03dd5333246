#include "trace/recording/collectives.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"

namespace daydream {
namespace {

// "ncclAllReduce" -> "allreduce", as the PyTorch profiler has it.
std::string NameOf(std::string_view range) {
  if (range.starts_with("nccl")) range.remove_prefix(4);
  return absl::AsciiStrToLower(std::string(range));
}

}  // namespace

CollectiveSizes::CollectiveSizes(const std::vector<MarkedSpan>& spans, StringPool& names) {
  for (const MarkedSpan& span : spans) {
    if (span.bytes == 0) continue;
    const auto bytes = static_cast<int64_t>(std::min(span.bytes, uint64_t{INT64_MAX}));
    CollectiveDetail detail;
    detail.name = names.Intern(NameOf(std::string(names.Get(span.name))));
    detail.dtype = names.Intern("Byte");
    detail.elements_in = detail.elements_out = bytes;
    lanes_[span.lane.value].push_back({span.begin, span.end, detail});
  }
  for (auto& [lane, sized] : lanes_) {
    std::stable_sort(sized.begin(), sized.end(),
                     [](const Sized& a, const Sized& b) { return a.begin < b.begin; });
  }
}

std::optional<CollectiveDetail> CollectiveSizes::At(LaneId lane, Instant t) const {
  const auto found = lanes_.find(lane.value);
  if (found == lanes_.end()) return std::nullopt;
  const auto after = std::partition_point(found->second.begin(), found->second.end(),
                                          [&](const Sized& s) { return s.begin <= t; });
  if (after == found->second.begin() || (after - 1)->end <= t) return std::nullopt;
  return (after - 1)->detail;
}

}  // namespace daydream
