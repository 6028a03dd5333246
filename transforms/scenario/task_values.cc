#include "transforms/scenario/task_values.h"

#include <algorithm>

#include "base/check.h"
#include "costmodel/op_shape.h"
#include "transforms/analysis/precision.h"

namespace daydream {
namespace {

// Bytes of an element as the framework names its types in collectives.
std::optional<int> BytesOfType(std::string_view type) {
  constexpr std::pair<std::string_view, int> kTypes[] = {
      {"Float", 4}, {"Half", 2},  {"BFloat16", 2}, {"Double", 8}, {"Int", 4},
      {"Long", 8},  {"Short", 2}, {"Byte", 1},     {"Char", 1},   {"Bool", 1}};
  for (const auto& [name, bytes] : kTypes) {
    if (type == name) return bytes;
  }
  return std::nullopt;
}

std::optional<double> IfRecorded(double value) {
  if (value <= 0) return std::nullopt;
  return value;
}

double Product(const std::array<uint32_t, 3>& sizes) {
  return static_cast<double>(sizes[0]) * sizes[1] * sizes[2];
}

}  // namespace

TaskValues::TaskValues(const Graph& graph, const Params& params, std::span<const ParamSpec> specs)
    : graph_(graph), params_(params), specs_(specs), works_(graph) {}

double TaskValues::Param(std::string_view name) const {
  for (const ParamSpec& spec : specs_) {
    if (spec.name == name) return InBaseUnits(params_[name], spec.unit);
  }
  DD_CHECK(false);
  return 0;
}

std::optional<double> TaskValues::Value(TaskId t, Field f) {
  if (t.index() >= graph_.size()) return std::nullopt;
  const Task& task = graph_.task(t);
  switch (f) {
    case Field::kTime:
      return static_cast<double>(task.duration.ns);
    case Field::kGap:
      return static_cast<double>(task.gap.ns);
    case Field::kLaunches:
      return Launches(t);
    case Field::kGrid:
    case Field::kBlock:
    case Field::kRegs:
      return LaunchValue(t, f);
    case Field::kFlops:
      if (task.kind == TaskKind::kMemcpy || task.kind == TaskKind::kMemset) return 0.0;
      return KernelValue(t, f);
    case Field::kBytes:
    case Field::kInBytes:
    case Field::kOutBytes:
      return BytesOf(t, f);
  }
  return std::nullopt;
}

std::optional<double> TaskValues::LaunchValue(TaskId t, Field f) const {
  const KernelDetail* kernel = graph_.Kernel(t);
  if (kernel == nullptr) return std::nullopt;
  if (f == Field::kGrid) return IfRecorded(Product(kernel->grid));
  if (f == Field::kBlock) return IfRecorded(Product(kernel->block));
  return IfRecorded(kernel->registers_per_thread);
}

std::optional<double> TaskValues::BytesOf(TaskId t, Field f) {
  const Task& task = graph_.task(t);
  switch (task.kind) {
    case TaskKind::kMemcpy:
    case TaskKind::kMemset: {
      const CopyDetail* copy = graph_.Copy(t);
      if (copy == nullptr) return std::nullopt;
      if (f == Field::kInBytes && task.kind == TaskKind::kMemset) return 0.0;
      return static_cast<double>(copy->bytes);
    }
    case TaskKind::kCollective: {
      const CollectiveDetail* c = graph_.Collective(t);
      auto size = c == nullptr ? std::nullopt : BytesOfType(graph_.Name(c->dtype));
      if (!size) return std::nullopt;
      int64_t elements = f == Field::kInBytes    ? c->elements_in
                         : f == Field::kOutBytes ? c->elements_out
                                                 : std::max(c->elements_in, c->elements_out);
      return static_cast<double>(elements) * *size;
    }
    case TaskKind::kKernel:
      return KernelValue(t, f);
    default:
      return std::nullopt;
  }
}

std::optional<double> TaskValues::KernelValue(TaskId t, Field f) {
  auto work = WorkOf(t);
  if (!work) return std::nullopt;
  if (f == Field::kFlops) return work->flops;
  if (!work->has_type) return std::nullopt;
  if (f == Field::kBytes) return work->bytes;
  double read = std::min(work->in_bytes, work->bytes);
  return f == Field::kInBytes ? read : work->bytes - read;
}

std::optional<TaskValues::Work> TaskValues::WorkOf(TaskId t) {
  if (graph_.task(t).kind != TaskKind::kKernel) return std::nullopt;
  OpWorkTable::Op op = works_.Of(t);
  if (op.work == nullptr) return std::nullopt;
  if (!summed_) works_.SumTimes([](TaskId) { return true; }), summed_ = true;
  auto [read, inserted] = read_.try_emplace(op.scope, 0);
  if (inserted) {
    const OpDetail* detail = graph_.OpOf(op.scope);
    auto shapes = detail == nullptr ? std::nullopt : ParseShapes(graph_.Name(detail->shapes));
    for (const Dims& dims : shapes.value_or(std::vector<Dims>{})) {
      double elements = dims.empty() ? 0 : 1;
      for (int64_t d : dims) elements *= static_cast<double>(d);
      read->second += elements * DTypeBytes(op.work->dtype);
    }
  }
  Duration total = works_.TimeOf(op.scope);
  double share = total > Duration{} ? static_cast<double>(graph_.task(t).duration.ns) /
                                          static_cast<double>(total.ns)
                                    : 0;
  return Work{.bytes = op.work->Bytes() * share,
              .in_bytes = read->second * share,
              .flops = op.work->flops * share,
              .has_type = op.work->dtype != DType::kUnknown};
}

double TaskValues::Launches(TaskId t) {
  if (launched_.empty()) {
    launched_.assign(graph_.size(), false);
    for (const Edge& e : graph_.edges()) {
      if (e.rule == Rule::kLaunch) launched_[e.to.index()] = true;
    }
  }
  return t.index() < launched_.size() && launched_[t.index()] ? 1 : 0;
}

std::optional<double> TaskValues::Value(TaskId t, GpuFact f, DType dtype) {
  if (t.index() >= graph_.size()) return std::nullopt;
  auto [it, inserted] = devices_.try_emplace(graph_.lane(graph_.task(t).lane).lane.device, nullptr);
  if (inserted) it->second = DeviceOf(graph_, t).spec;
  const DeviceSpec* spec = it->second;
  if (spec == nullptr) return std::nullopt;
  switch (f) {  // per nanosecond
    case GpuFact::kHbmBandwidth:
      return IfRecorded(spec->memory_gb_per_s);
    case GpuFact::kSustainedBandwidth:
      return IfRecorded(spec->SustainedBandwidth() / 1e9);
    case GpuFact::kPcieBandwidth:
      return IfRecorded(spec->pcie_gb_per_s);
    case GpuFact::kMemory:
      return IfRecorded(spec->memory_gb * 1e9);
    case GpuFact::kMultiprocessors:
      return IfRecorded(spec->multiprocessors);
    case GpuFact::kPeak:
      return IfRecorded((dtype == DType::kFp32 ? spec->Peak(dtype) : spec->TensorPeak(dtype)) *
                        1e3);
    case GpuFact::kSustained:
      return IfRecorded(spec->SustainedTflops(dtype) * 1e3);
  }
  return std::nullopt;
}

}  // namespace daydream
