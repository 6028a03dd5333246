#include "report/questions/copy_findings.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/text/format.h"

namespace daydream {
namespace {

constexpr double kCopiesShare = 0.5;  // of a step; chosen

}  // namespace

std::vector<Finding> FindingsOfCopies(const Graph& graph, const std::vector<bool>& counts,
                                      size_t steps, Duration step) {
  Duration time;
  uint64_t bytes = 0, copies = 0;
  bool pageable = false;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || t.kind != TaskKind::kMemcpy || t.step >= counts.size() || !counts[t.step]) {
      continue;
    }
    const CopyDetail* copy = graph.Copy(TaskId(i));
    if (copy == nullptr || copy->to != Memory::kDevice) continue;
    if (copy->from != Memory::kPageable && copy->from != Memory::kPinned) continue;
    pageable |= copy->from == Memory::kPageable;
    time += t.duration;
    bytes += copy->bytes;
    ++copies;
  }
  const auto each = static_cast<int64_t>(std::max<size_t>(steps, 1));
  const Duration in_step = time / each;
  const double share = step.ns > 0 ? in_step.seconds() / step.seconds() : 0;
  if (share < kCopiesShare || bytes == 0) return {};
  return {
      {.kind = FindingKind::kCopies,
       .about = About::kProgram,
       .text = fmt::format("{} of the step copy from the host to the GPU: {} in {}, at {:.3g} "
                           "GB/s",
                           FormatTime(in_step), FormatBytes(bytes / steps),
                           copies <= steps ? "one copy" : FormatCount(copies / steps) + " copies",
                           static_cast<double>(bytes) / static_cast<double>(time.ns)),
       .where = {},
       .time = in_step,
       .share = std::min(share, 1.0),
       .fix = fmt::format("keep on the GPU what is the same in every step, such as weights; copy "
                          "the rest ahead, {}on a stream of its own, or in 16 bit",
                          pageable ? "from pinned memory and " : "")}};
}

}  // namespace daydream
