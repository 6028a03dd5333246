#include "report/predict/error_kind.h"

#include <utility>

#include "transforms/analysis/device_choice.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/precision.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

const DeviceSpec* RecordedGpu(const Graph& graph) {
  KnownDevices devices(graph);
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.kind != TaskKind::kKernel) continue;
    if (const DeviceSpec* spec = devices.Of(TaskId(i))) return spec;
  }
  return nullptr;
}

// Of the time of kernels, those of ops with recorded shapes.
double ShareWithShapes(const Graph& graph) {
  OpShapes shapes(graph);
  Duration known, all;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (task.kind != TaskKind::kKernel || task.removed) continue;
    all += task.duration;
    if (shapes.Of(TaskId(i)).known()) known += task.duration;
  }
  return all > Duration{} ? known.seconds() / all.seconds() : 1;
}

std::string GpuKind(const DeviceSpec& from, const DeviceSpec& to) {
  if (from.vendor != "NVIDIA" || to.vendor != "NVIDIA") return "gpu, other vendor";
  if (from.SlotPowered() || to.SlotPowered()) return "gpu, slot-powered";
  return to.measured_fp32_gemm_tflops > 0 ? "gpu" : "gpu, by data sheet";
}

}  // namespace

ErrorKind ErrorKindOf(const Application& application, const Graph& recorded,
                      std::span<const KernelTerms> terms) {
  ErrorKind kind;
  kind.with_shapes = kind.without_shapes = application.transform->name;
  if (const std::string name(application.transform->name); name == "batch" || name == "amp") {
    kind.without_shapes = name + ", no shapes";
    kind.known = ShareWithShapes(recorded);
  }
  if (!application.transform->same_work) return kind;
  const auto named = ChooseDevice(application.params.text("from"));
  const DeviceSpec* from = named.ok() ? &named->spec : RecordedGpu(recorded);
  auto to = ChooseDevice(application.params.text("to"));
  if (from == nullptr || !to.ok()) return kind;  // then it cannot be applied
  kind.with_shapes = GpuKind(*from, to->spec);
  kind.without_shapes = kind.with_shapes + ", no shapes";
  double known = 0, measured = 0, all = 0;
  for (const KernelTerms& t : terms) {
    const auto ns = static_cast<double>(t.before.ns);
    all += ns;
    if (t.source == TermSource::kShapes) known += ns;
    if (t.source == TermSource::kMeasured) measured += ns;
  }
  if (all > 0) kind.measured = measured / all;
  if (all > measured) kind.known = known / (all - measured);
  return kind;
}

void LeastChecked::Add(const std::string& other, std::span<const std::string> left_out) {
  const size_t known = ModelErrorOf(other, left_out).rows;
  const HeldRows rows_held = HeldRowsOf(other);
  const bool worse = std::pair(known > 0, rows_held.share) < std::pair(rows > 0, held.share);
  if (!kind.empty() && !worse) return;
  kind = other, rows = known, held = rows_held;
}

}  // namespace daydream
