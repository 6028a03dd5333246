#include "report/predict/other_kernels.h"

#include <vector>

#include "report/predict/intervals.h"

namespace daydream {
namespace {

std::vector<StepBatch::Longer> KernelsOffBy(const Graph& graph, double error) {
  std::vector<StepBatch::Longer> other;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& t = graph.tasks()[i];
    if (t.removed || t.kind != TaskKind::kKernel) continue;
    other.push_back({TaskId(i), t.duration.Scaled(Factor(error)) - t.duration, {}});
  }
  return other;
}

}  // namespace

std::optional<KernelEnds> StepsAtKernelEnds(const Graph& graph, double sigma, Replays& replays,
                                            const QuickHost* host) {
  const auto step_at = [&](double error) -> std::optional<Duration> {
    if (host != nullptr) return host->StepOf(graph, replays, KernelsOffBy(graph, error));
    const Replays::Lent batch = replays.Batch(graph);
    if (batch == nullptr) return std::nullopt;
    return batch->StepWith(KernelsOffBy(graph, error));
  };
  const auto quick = step_at(-kNinety * sigma), slow = step_at(kNinety * sigma);
  if (!quick.has_value() || !slow.has_value()) return std::nullopt;
  return KernelEnds{*quick, *slow};
}

}  // namespace daydream
