#include "report/html/roofline_block.h"

#include <map>
#include <utility>

#include "costmodel/kernel_class.h"
#include "costmodel/roofline.h"
#include "report/text/json_writer.h"
#include "transforms/analysis/op_work.h"
#include "transforms/analysis/precision.h"

namespace daydream {
namespace {

struct ClassWork {
  size_t kernels = 0;
  Duration time;
  double flops = 0, bytes = 0;
};

using ClassWorks = std::map<std::pair<std::string_view, std::string_view>, ClassWork>;

void WriteDevice(const DeviceSpec& spec, JsonWriter& json) {
  json.Key("device").String(spec.name).Key("source").String(spec.source);
  json.Key("memory_gb_per_s").Double(spec.memory_gb_per_s);
  json.Key("tflops").BeginInlineObject();
  for (DType dtype :
       {DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8, DType::kNvfp4}) {
    const double rate = dtype == DType::kFp32 ? spec.Peak(dtype) : spec.TensorPeak(dtype);
    if (rate > 0) json.Key(DTypeName(dtype)).Double(rate);
  }
  json.EndObject();
}

void WriteClasses(const ClassWorks& classes, JsonWriter& json) {
  json.Key("classes").BeginArray();
  for (const auto& [key, work] : classes) {
    json.BeginInlineObject().Key("name").String(key.first).Key("format").String(key.second);
    json.Key("kernels").UInt(work.kernels).Key("time_ns").Int(work.time.ns);
    json.Key("flops").Rounded(work.flops, 0).Key("bytes").Rounded(work.bytes, 0).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string RooflineJson(const Graph& graph) {
  OpWorkTable works(graph);
  PrecisionRules rules(graph);
  // What else a convolution launches, as copies to another layout, does none of its arithmetic.
  const auto counts = [&](TaskId t) {
    const OpWorkTable::Op op = works.Of(t);
    const bool product = op.work != nullptr && op.work->kind != OpWork::Kind::kMemory;
    return !product || Multiplies(rules.Of(t).traits.kind);
  };
  works.SumTimes(counts);
  KnownDevices devices(graph);
  const DeviceSpec* device = nullptr;
  ClassWorks classes;
  Duration all, known;
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.tasks()[i];
    if (task.removed || task.kind != TaskKind::kKernel) continue;
    all += task.duration;
    const DeviceSpec* spec = devices.Of(TaskId(i));
    if (device == nullptr) device = spec;
    const OpWorkTable::Op op = works.Of(TaskId(i));
    const Duration total = op.work != nullptr ? works.TimeOf(op.scope) : Duration{};
    if (spec == nullptr || spec != device || total <= Duration{} || !op.work->exact) continue;
    if (!counts(TaskId(i))) continue;
    const KernelPrecision kernel = rules.Of(TaskId(i));
    const bool multiplies = Multiplies(kernel.traits.kind);
    // Operands in 16 bit are a fact; only what 32 bit run as is told by the kernel alone.
    const bool short_format = op.work->dtype != DType::kUnknown && DTypeBytes(op.work->dtype) < 4;
    const DType format = short_format ? op.work->dtype : RecordedFormat(*spec, kernel);
    ClassWork& sum =
        classes[{KernelClassName(kernel.traits.kind), multiplies ? DTypeName(format) : ""}];
    const double share = task.duration.seconds() / total.seconds();
    ++sum.kernels;
    sum.time += task.duration;
    sum.flops += op.work->flops * share;
    sum.bytes += op.work->Bytes() * share;
    known += task.duration;
  }
  if (device == nullptr) return "null\n";
  JsonWriter json;
  json.BeginObject();
  WriteDevice(*device, json);
  json.Key("time_ns").Int(all.ns).Key("known_time_ns").Int(known.ns);
  WriteClasses(classes, json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace daydream
