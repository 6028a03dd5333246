#include "transforms/analysis/capture_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "transforms/analysis/batch_sizes.h"
#include "transforms/analysis/memory_profile.h"
#include "transforms/analysis/saved_tensors.h"

namespace daydream {
namespace {

using BytesByStep = std::map<uint16_t, double>;

BytesByStep CopiedToTheGpu(const Graph& graph) {
  BytesByStep bytes;
  for (size_t i = 0; i < graph.size(); ++i) {
    const CopyDetail* copy = graph.Copy(TaskId(i));
    if (copy == nullptr || graph.task(TaskId(i)).removed) continue;
    if (copy->to == Memory::kDevice && copy->from != Memory::kDevice) {
      bytes[graph.task(TaskId(i)).step] += static_cast<double>(copy->bytes);
    }
  }
  return bytes;
}

double Most(const BytesByStep& steps) {
  double most = 0;
  for (const auto& [step, bytes] : steps) most = std::max(most, bytes);
  return most;
}

MemoryChange Buffers(double bytes, bool unknown) {
  return {.what = "input buffers that graphs have of their own",
          .bytes = std::llround(bytes),
          .estimate = true,
          .unknown = unknown,
          .at_most = bytes > 0};
}

// Bytes of the activation or gradient that an op works on; 0: a parameter, or not known.
double ReadBy(const Graph& graph, const OpShape& shape, const BatchSizes& sizes) {
  if (!shape.known()) return 0;
  const double elements = WorkedOn(shape);
  for (const Dims& dims : shape.inputs) {
    if (ElementsOf(dims) == elements && sizes.IsParameter(dims)) return 0;
  }
  const OpChange* change = graph.model_changes().Of(shape.scope);
  return elements * DTypeBytes(shape.dtype) * (change != nullptr ? change->width : 1);
}

// Adds the activations that layers read forward and the gradients that they read backward, once for
// each layer and direction: a later graph of the same layer reads what the one before left. The
// first layer of a step reads what was copied. Returns whether all of them have shapes.
bool AddHandedOver(const Graph& graph, std::span<const LayerWork> work, BytesByStep& inputs) {
  OpShapes shapes(graph);
  const BatchSizes sizes(graph, shapes);
  struct Input {
    bool first = false;
    double bytes = 0;
  };
  std::map<std::tuple<uint16_t, LayerId, Phase, uint16_t>, Input> read;
  std::set<uint16_t> begun;
  for (const LayerWork& w : work) {
    const Task& task = graph.task(w.task);
    if (task.phase != Phase::kForward && task.phase != Phase::kBackward) continue;
    auto [it, fresh] = read.try_emplace({task.step, w.layer, task.phase, task.copy});
    if (fresh) it->second.first = begun.insert(task.step).second;
    if (it->second.bytes == 0) it->second.bytes = ReadBy(graph, shapes.Of(w.task), sizes);
  }
  bool known = true;
  for (const auto& [where, input] : read) {
    if (input.first) continue;
    inputs[std::get<0>(where)] += input.bytes;
    known &= input.bytes > 0;
  }
  return known;
}

}  // namespace

MemoryChange InputBuffersOfSteps(const Graph& graph) {
  return Buffers(Most(CopiedToTheGpu(graph)), false);
}

MemoryChange InputBuffersOfLayers(const Graph& graph, std::span<const LayerWork> work) {
  BytesByStep inputs = CopiedToTheGpu(graph);
  const bool all_known = AddHandedOver(graph, work, inputs);
  // What is on the GPU at its peak is there twice at most.
  const MemoryProfile now = ProfileMemory(graph);
  const double alive = now.at_least ? now.in_step : now.peak;
  const double bytes = std::min(Most(inputs), alive);
  return Buffers(bytes, bytes == 0 && (!all_known || Most(inputs) > 0));
}

}  // namespace daydream
