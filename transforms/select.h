// The selectors of speedup and remove: which tasks an optimization is about.
//
//   SELECTOR := TERM ('&' TERM)*          all terms must hold
//   TERM     := ['!'] [KEY ':'] VALUE     '!' inverts; without a key: kernel
//
//   kernel:RE  GPU operations by name        op:RE     inside a framework op (aten::conv2d)
//   call:RE    CUDA/HIP API calls by name    scope:RE  inside any op, annotation or module frame
//   layer:RE   tasks of a layer              lane:RE   tasks of a thread or stream by name
//   phase:P    forward, backward, optimizer, data, comm, none
//   kind:K     kernel, memcpy, memset, comm, call, host, wait, delay, data
//   class:C    gemm, conv, elementwise, ... (costmodel/kernel_class.h)
//   step:N     tasks of the step with this index
//
// RE is an RE2 expression that may match anywhere in the name; write & in it as [&].
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace daydream {

struct SelectorTerm;

class Selector {
 public:
  // InvalidArgument (E0103) names the part that cannot be read.
  static absl::StatusOr<Selector> Compile(std::string_view text);

  // Live tasks that match, in TaskId order. O(tasks); each distinct name is matched once.
  std::vector<TaskId> Select(const Graph& graph) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::shared_ptr<const SelectorTerm>> terms_;
};

}  // namespace daydream
