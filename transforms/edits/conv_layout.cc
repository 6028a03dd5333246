#include "transforms/edits/conv_layout.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/text.h"
#include "transforms/analysis/op_shapes.h"
#include "transforms/analysis/precision.h"
#include "transforms/core/floor_param.h"
#include "transforms/edits/inserted_kernel.h"

namespace daydream {
namespace {

// Elements of 16 bit in the 16 bytes to which operands of tensor cores are aligned.
constexpr int64_t kAligned = 8;

struct ConvDims {
  Dims gradient, input, weight;  // gradient: of the output; empty in forward
};

std::optional<ConvDims> DimsOf(const Graph& graph, ScopeId op) {
  const OpDetail* detail = graph.OpOf(op);
  if (detail == nullptr || !detail->shapes.valid()) return std::nullopt;
  auto parsed = ParseShapes(graph.Name(detail->shapes));
  if (!parsed) return std::nullopt;
  const std::string_view name = graph.Name(graph.tables().scopes[op.index()].name);
  const std::vector<Dims>& in = *parsed;
  ConvDims dims;
  if (!Contains(name, "backward")) {
    if (in.size() < 2) return std::nullopt;
    dims = {.gradient = {}, .input = in[0], .weight = in[1]};
  } else {
    if (in.size() < 3) return std::nullopt;
    const bool input_first = Contains(name, "cudnn") || Contains(name, "miopen");
    dims = {.gradient = in[input_first ? 1 : 0], .input = in[input_first ? 0 : 1], .weight = in[2]};
  }
  const bool images = dims.input.size() == 4 && dims.weight.size() == 4;
  if (!images || (!dims.gradient.empty() && dims.gradient.size() != 4)) return std::nullopt;
  return dims;
}

bool IsPlainProduct(const ConvDims& dims) {
  const bool window = dims.weight[2] * dims.weight[3] > 1;
  // The stride of a forward convolution is not in its shapes.
  const bool stride = !dims.gradient.empty() && dims.gradient[2] != dims.input[2];
  return !window && !stride && dims.input[2] * dims.input[3] % kAligned == 0;
}

// Scopes that launch layout changes already, and whether everything has channels last.
struct Recorded {
  absl::flat_hash_set<ScopeId> changed;
  bool channels_last = false;
};

Recorded Look(const Graph& graph, OpWorkTable& works) {
  Recorded recorded;
  bool last = false;
  absl::flat_hash_map<NameId, bool> changes;  // by kernel; each name is looked at once
  for (size_t i = 0; i < graph.size(); ++i) {
    const TaskId t(i);
    const Task& task = graph.task(t);
    if (task.removed || task.kind != TaskKind::kKernel) continue;
    const auto [it, first] = changes.try_emplace(task.name, false);
    if (first) {
      const std::string_view name = graph.Name(task.name);
      it->second = IsLayoutChange(name);
      last = last || (!it->second && IsChannelsLast(name));
    }
    if (it->second) recorded.changed.insert(works.Of(t).scope);
  }
  recorded.channels_last = last && recorded.changed.empty();
  return recorded;
}

}  // namespace

bool IsLayoutChange(std::string_view kernel) {
  return Contains(kernel, "nchwToNhwc") || Contains(kernel, "nhwcToNchw") ||
         Contains(kernel, "NchwToNhwc") || Contains(kernel, "NhwcToNchw") ||
         kernel.starts_with("batched_transpose_");
}

bool IsChannelsLast(std::string_view kernel) {
  return Contains(kernel, "nhwckrsc_nhwc") || Contains(kernel, "channels_last") ||
         Contains(kernel, "nhwc_nhwc") || Contains(kernel, "NHWC");
}

std::vector<LayoutChange> MissingLayoutChanges(const Graph& graph, OpWorkTable& works,
                                               std::span<const TaskId> kernels) {
  std::vector<LayoutChange> changes;
  const Recorded recorded = Look(graph, works);
  if (recorded.channels_last) return changes;
  absl::flat_hash_set<ScopeId> seen;
  for (TaskId t : kernels) {
    const OpWorkTable::Op op = works.Of(t);
    const bool conv = op.work != nullptr && op.work->kind == OpWork::Kind::kConv;
    if (!conv || recorded.changed.contains(op.scope) || !seen.insert(op.scope).second) continue;
    const std::optional<ConvDims> dims = DimsOf(graph, op.scope);
    if (!dims || IsPlainProduct(*dims)) continue;
    const double input = ElementsOf(dims->input), weight = ElementsOf(dims->weight);
    if (dims->gradient.empty()) {
      changes.push_back({.at = t, .elements = input});
      changes.push_back({.at = t, .elements = weight});
      continue;
    }
    // The gradients of input and weight are convolutions of their own.
    const double gradient = ElementsOf(dims->gradient);
    for (double elements : {gradient, weight, gradient, input}) {
      changes.push_back({.at = t, .elements = elements});
    }
    changes.push_back({.at = t, .after = true, .elements = input});
  }
  return changes;
}

void AddLayoutChanges(Editor& edit, std::span<const LayoutChange> changes, double bytes,
                      Duration floor) {
  if (changes.empty()) return;
  edit.BeginCause("layout changes of the library for tensor cores");
  const HostCosts costs = MeasureHostCosts(edit.graph());
  const NameId before = edit.graph().AddName("nchwToNhwcKernel (for tensor cores)");
  const NameId after = edit.graph().AddName("nhwcToNchwKernel (for tensor cores)");
  const NameId call = edit.graph().AddName("cudaLaunchKernel");
  KnownDevices devices(edit.graph());
  for (const LayoutChange& change : changes) {
    Duration by_bytes;
    if (const DeviceSpec* device = devices.Of(change.at); device != nullptr) {
      by_bytes =
          Duration::FromDouble(2 * bytes * change.elements * 1e9 / device->SustainedBandwidth());
    }
    // The library launches it from within the op that is there.
    const TaskId added = InsertKernel(edit,
                                      {.at = change.at,
                                       .after = change.after,
                                       .name = change.after ? after : before,
                                       .duration = std::max(floor, by_bytes),
                                       .op = {},
                                       .call = call},
                                      costs);
    edit.SetAtEnds(added, edit.AtEnds([&](const EndView& at) {
      return std::max(FloorOf(at.params()), by_bytes);
    }));
  }
}

}  // namespace daydream
