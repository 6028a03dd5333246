// Selectors: which tasks an optimization is about. `speedup` and `remove` take them as text, option
// files (transforms/scenario/option_file.h) build them from the same keys and combine them further.
//
//   SELECTOR := TERM ('&' TERM)*          all terms must hold
//   TERM     := ['!'] [KEY ':'] VALUE     '!' inverts; without a key: kernel
//
//   kernel:RE  GPU operations by name        op:RE     inside a framework op (aten::conv2d)
//   call:RE    CUDA/HIP API calls by name    scope:RE  inside any op, annotation or module frame
//   name:RE    any task by name              layer:RE  tasks of a layer; also module:RE
//   lane:RE    tasks of a thread or stream by name
//   phase:P    forward, backward, optimizer, data, comm, none or other
//   kind:K     kernel, memcpy, memset, comm, call, host, wait, delay (or gap: dead time of a stream
//              that no rule explains), data, or several kinds: gpu,
//              launch (calls that put work on the GPU), sync (waits for the GPU), cpu_op (host work
//              of framework ops), graph (calls that launch a CUDA graph)
//   class:C    gemm, conv, elementwise, ... (costmodel/kernel_class.h); also category:C
//   step:N     tasks of the step with this index, or of a range 2-5; device:N and rank:N likewise
//   stream:N   tasks of the streams with this number, range, or RE for a name; thread:N likewise
//   dtype:D    kernels that work on fp32, fp16, ... by their name, else by their op's inputs
//   shape:RE   tasks of ops whose recorded input shapes match, such as \[32, 3, 224, 224\]
//   direction:D   copies by where they go: h2d, d2h, d2d, h2h
//   memory:M      copies that read or write pageable, pinned, managed, ... memory; device: copies
//                 inside the GPU
//   collective:RE collectives by the name of the operation
//
// RE is an RE2 expression that may match anywhere in the name; write & in it as [&]. Spaces around
// a term are no part of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "transforms/core/expression.h"

namespace daydream {

struct SelectorNode;

// How the tasks of one selector follow from those of another.
enum class Relation : uint8_t {
  kNot,         // the others
  kLaunchedBy,  // GPU work that these calls launch
  kInside,      // of the same scope (op, range, module frame), or of one nested in it
  kBefore,      // on the same lane in the same step, before the first of them
  kAfter,       // on the same lane in the same step, after the last of them
  kFirst,       // the first of them on each lane in each step
  kLast,        // the last of them on each lane in each step
  kBetween,     // on the same lane in the same step, after one of them and before another
};

class Selector {
 public:
  // Reads the text form. InvalidArgument (E0103) names the part that cannot be read.
  static absl::StatusOr<Selector> Compile(std::string_view text);

  // The same, read once for all graphs of the same tables: a sweep asks for it at each point.
  static absl::StatusOr<Selector> CompileFor(const Graph& graph, std::string_view text);

  // One key with its value; errors as of CompileTerm (transforms/core/select_term.h).
  static absl::StatusOr<Selector> Key(std::string_view key, std::string_view value);
  static Selector All(std::vector<Selector> parts);  // of none: every task
  static Selector Any(std::vector<Selector> parts);  // of none: no task
  static Selector Related(Relation relation, Selector to);
  // Tasks for which a condition holds; those that lack a field of it do not match.
  static Selector Where(std::shared_ptr<const Expression> condition);

  // The same tasks under a name; evaluated once however often a selector uses it.
  static Selector Named(std::string_view name, const Selector& selector);

  // Live tasks that match, in TaskId order. O(tasks) for each part; each distinct name is matched
  // once. `values` is needed by selectors made with Where().
  std::vector<TaskId> Select(const Graph& graph, ExpressionValues* values = nullptr) const;
  const std::string& text() const { return text_; }

 private:
  std::vector<TaskId> Find(const Graph& graph, ExpressionValues* values) const;

  std::string text_;
  std::shared_ptr<const SelectorNode> node_;
  bool by_text_ = false;  // text_ says all
};

}  // namespace daydream
