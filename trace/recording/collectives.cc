#include "trace/recording/collectives.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "trace/collective_group.h"

namespace daydream {
namespace {

// "nccl:AllReduce" -> "AllReduce"
std::string_view FunctionOf(std::string_view range) {
  if (range.starts_with("nccl")) range.remove_prefix(4);
  if (range.starts_with(":")) range.remove_prefix(1);
  return range;
}

// The number behind the last `mark` of the text, which both go from it; -1 when there is none.
int32_t TakeLast(std::string_view& text, char mark) {
  const size_t at = text.rfind(mark);
  if (at == text.npos) return -1;
  int32_t number = -1;
  const auto [end, error] =
      std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return -1;
  text.remove_suffix(text.size() - at);
  return number;
}

// "8f03a1e55c/8 0>3" and a number, as MARK_KIND_COLLECTIVE has them.
void SetGroup(const MarkedSpan& span, StringPool& names, CollectiveDetail& detail) {
  if (!span.group.valid() || span.number < 0) return;
  const std::string text(names.Get(span.group));
  std::string_view rest = text;
  CollectiveGroup group{.name = {}, .members = {}, .sequence = span.number};
  group.to = TakeLast(rest, '>');
  group.from = group.to < 0 ? -1 : TakeLast(rest, ' ');
  const int32_t size = TakeLast(rest, '/');
  group.name = rest;
  if (size > 0) detail.group_size = size;
  detail.process_group = names.Intern(FormatCollectiveGroup(group));
}

CollectiveDetail DetailOf(const MarkedSpan& span, StringPool& names) {
  CollectiveDetail detail;
  const std::string range(names.Get(span.name));
  // As the PyTorch profiler has it.
  detail.name = names.Intern(absl::AsciiStrToLower(std::string(FunctionOf(range))));
  detail.dtype = names.Intern("Byte");
  detail.elements_in = detail.elements_out =
      static_cast<int64_t>(std::min(span.bytes, uint64_t{INT64_MAX}));
  SetGroup(span, names, detail);
  return detail;
}

// Ranges of NCCL on one thread, in the order in which they begin.
class OneLane {
 public:
  explicit OneLane(std::vector<CollectiveCalls::Called>& out) : out_(out) {}

  void Add(const MarkedSpan& span, StringPool& names) {
    const std::string range(names.Get(span.name));
    const std::string_view function = FunctionOf(range);
    if (span.bytes > 0) {
      const CollectiveDetail detail = DetailOf(span, names);
      out_.push_back({span.begin, span.end, detail});
      in_group_.push_back(detail);
    } else if (function == "GroupStart") {
      if (depth_++ == 0) in_group_.clear();
    } else if (function == "GroupEnd" && depth_ > 0 && --depth_ == 0) {
      if (in_group_.size() == 1) out_.push_back({span.begin, span.end, in_group_.front()});
    }
  }

 private:
  std::vector<CollectiveCalls::Called>& out_;
  std::vector<CollectiveDetail> in_group_;
  int depth_ = 0;  // groups in groups are launched with the outermost
};

}  // namespace

CollectiveCalls::CollectiveCalls(const std::vector<MarkedSpan>& spans, StringPool& names) {
  absl::flat_hash_map<uint32_t, std::vector<const MarkedSpan*>> by_lane;
  for (const MarkedSpan& span : spans) {
    if (span.kind != EventKind::kAnnotation || !span.name.valid()) continue;
    if (span.bytes > 0 || names.Get(span.name).starts_with("nccl"))
      by_lane[span.lane.value].push_back(&span);
  }
  for (auto& [lane, ranges] : by_lane) {
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const auto* a, const auto* b) { return a->begin < b->begin; });
    std::vector<Called> called;
    OneLane one(called);
    for (const MarkedSpan* span : ranges) one.Add(*span, names);
    if (!called.empty()) lanes_[lane] = std::move(called);
  }
}

std::optional<CollectiveDetail> CollectiveCalls::At(LaneId lane, Instant t) const {
  const auto found = lanes_.find(lane.value);
  if (found == lanes_.end()) return std::nullopt;
  const auto after = std::partition_point(found->second.begin(), found->second.end(),
                                          [&](const Called& c) { return c.begin <= t; });
  if (after == found->second.begin() || (after - 1)->end <= t) return std::nullopt;
  return (after - 1)->detail;
}

}  // namespace daydream
