#include "graph/host_lead.h"

#include <algorithm>

namespace daydream {
namespace {

constexpr int64_t kPartsThatDiffer = 100;  // chosen: less than such a part of a step is nothing

bool IsKnown(const StepBegin& begin) { return begin.call.valid() && begin.work.valid(); }

}  // namespace

std::optional<HostLead> HostLead::Of(const Graph& graph) {
  const std::span<const GraphStep> steps = graph.steps();
  size_t first = 1;
  while (first < steps.size() && !steps[first].measured) ++first;
  if (first >= steps.size()) return std::nullopt;
  size_t last = steps.size() - 1;
  while (!steps[last].measured) --last;
  if (last + 1 < steps.size() && IsKnown(steps[last + 1].begin)) ++last;
  if (last == first || !IsKnown(steps[first].begin) || !IsKnown(steps[last].begin)) {
    return std::nullopt;
  }
  HostLead lead;
  lead.tasks_ = {steps[first].begin.call, steps[first].begin.work, steps[last].begin.call,
                 steps[last].begin.work};
  lead.steps_ = static_cast<int64_t>(last - first);
  std::array<Instant, 4> recorded;
  for (size_t i = 0; i < recorded.size(); ++i) {
    recorded[i] = graph.task(lead.tasks_[i]).recorded_start;
  }
  lead.recorded_ = std::max(Drained(recorded), Duration{});
  return lead;
}

Duration HostLead::UsedUp(const std::array<Instant, 4>& starts, Duration step) const {
  const Duration each = (Drained(starts) - recorded_) / steps_;
  const Duration beyond = each - step / kPartsThatDiffer;
  return std::max(std::min(each, beyond + beyond), Duration{});
}

}  // namespace daydream
