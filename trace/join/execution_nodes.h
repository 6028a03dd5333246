// The nodes of a PyTorch execution trace (ExecutionTraceObserver), all schemas: until 1.0.1 the
// fields are in the node, from 1.0.2-chakra on in lists of inputs, outputs and attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace daydream {

// Texts point into the file.
struct ExecutionNode {
  std::string_view name;
  int64_t id = 0, parent = 0;
  int64_t order = 0;   // grows with the start of the op (rf_id); the file is in order of ends
  int64_t thread = 0;  // the profiler's number, not the system's
  std::string_view shapes, types;    // of inputs, as JSON arrays
  std::string_view inputs, outputs;  // values, as JSON arrays
  std::string_view output_types;     // as JSON array
};

struct ExecutionTrace {
  std::unique_ptr<std::string> text;  // stays put when the trace is moved
  std::vector<ExecutionNode> nodes;   // in order of starts
};

// Nodes are empty when the file is no execution trace. Errors of OpenFile().
absl::StatusOr<ExecutionTrace> ReadExecutionTrace(const std::string& path);

// The elements of a JSON array.
std::vector<std::string_view> ElementsOf(std::string_view array);

// [tensor, storage, offset, elements, bytes per element, device] of a value of a type such as
// "Tensor(float)" or "GenericList[Tensor(float),Tensor(float)]": ids of the storages, appended.
// `value` and `type` are JSON texts.
void StoragesOf(std::string_view value, std::string_view type, std::vector<int64_t>& storages);

}  // namespace daydream
