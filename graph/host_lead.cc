#include "graph/host_lead.h"

#include <algorithm>

namespace daydream {
namespace {

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
  HostLead lead;
  if (last == first) {
    // Two count, of which one has no period; or the graph was not built from a recording.
    if (steps[0].measured || steps[first].recorded_host <= Duration{}) return std::nullopt;
    lead.lone_ = first;
    lead.recorded_ = std::max(steps[first].recorded_host - steps[first].recorded_period, {});
    return lead;
  }
  if (!IsKnown(steps[first].begin) || !IsKnown(steps[last].begin)) return std::nullopt;
  lead.tasks_ = {steps[first].begin.call, steps[first].begin.work, steps[last].begin.call,
                 steps[last].begin.work};
  lead.steps_ = static_cast<int64_t>(last - first);
  Starts recorded;
  for (size_t i = 0; i < recorded.size(); ++i) {
    recorded[i] = graph.task(lead.tasks_[i]).recorded_start;
  }
  lead.recorded_ = std::max(Drained(recorded), Duration{});
  return lead;
}

Duration HostLead::UsedUp(const Starts& starts, std::span<const StepExtent> extents,
                          Duration step) const {
  const Duration drained = one_step() ? HostPeriod(extents, step) - step : Drained(starts);
  const Duration each = (drained - recorded_) / steps_;
  const Duration beyond = each - step / kPartsThatDiffer;
  return std::max(std::min(each, beyond + beyond), Duration{});
}

Duration HostLead::HostPeriod(std::span<const StepExtent> extents, Duration step) const {
  if (!one_step()) return step;
  const std::optional<StepWindow>& host = extents[*lone_].host;
  return host.has_value() ? host->length() : Duration{};
}

}  // namespace daydream
