#include "transforms/analysis/link_rate.h"

#include <algorithm>

#include "base/median.h"
#include "transforms/analysis/precision.h"

namespace daydream {
namespace {

// Pinned copies reach this share of what PCIe is rated at: 12.3 of 15.75 GB/s on a 2080 Ti and a
// V100 (docs/optimizations/pin-memory.md).
constexpr double kUsableShare = 0.78;

}  // namespace

double UsableLinkRate(const Graph& graph, TaskId t) {
  const DeviceMatch match = DeviceOf(graph, t);
  return match.spec == nullptr ? 0 : match.spec->pcie_gb_per_s * 1e9 * kUsableShare;
}

std::optional<CopyWay> WayOf(const CopyDetail& copy) {
  auto host = [](Memory m) { return m == Memory::kPageable || m == Memory::kPinned; };
  if (host(copy.from) && copy.to == Memory::kDevice) return kToDevice;
  if (copy.from == Memory::kDevice && host(copy.to)) return kToHost;
  return std::nullopt;
}

double CopyRate(uint64_t bytes, Duration d) {
  return d > Duration{} ? static_cast<double>(bytes) / d.seconds() : 0;
}

std::array<double, 2> PinnedRates(const Graph& graph) {
  std::array<std::vector<double>, 2> rates;
  for (size_t i = 0; i < graph.size(); ++i) {
    const TaskId t(i);
    const CopyDetail* d = graph.task(t).kind == TaskKind::kMemcpy ? graph.Copy(t) : nullptr;
    if (d == nullptr || d->bytes < kLargeCopy) continue;
    if (d->from != Memory::kPinned && d->to != Memory::kPinned) continue;
    if (auto way = WayOf(*d)) rates[*way].push_back(CopyRate(d->bytes, graph.task(t).duration));
  }
  return {Median(rates[kToDevice]), Median(rates[kToHost])};
}

std::array<double, 2> LinkShares(const Graph& graph) {
  Duration steps;
  for (const GraphStep& step : graph.steps()) steps += step.recorded_period;
  std::array<Duration, 2> busy{};
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.kind != TaskKind::kMemcpy || task.removed) continue;
    const CopyDetail* d = graph.Copy(TaskId(i));
    if (d == nullptr) continue;
    if (auto way = WayOf(*d)) busy[*way] += task.duration;
  }
  std::array<double, 2> shares{};
  if (steps <= Duration{}) return shares;
  for (int way : {kToDevice, kToHost}) {
    shares[way] = std::min(1.0, static_cast<double>(busy[way].ns) / static_cast<double>(steps.ns));
  }
  return shares;
}

}  // namespace daydream
