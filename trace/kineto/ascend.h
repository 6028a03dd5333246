// Work of Ascend devices in `trace_view.json` of torch_npu. Its events have no category: tasks of a
// device say their "Task Type", calls of CANN are named "Level@function". What joins them is a
// "connection_id", or a flow event that begins in the call and ends where the task starts.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/kineto/event.h"
#include "trace/trace_builder.h"

namespace daydream {

class AscendRows {
 public:
  enum class Kind : uint8_t { kOther, kCall, kKernel, kCopy, kEventTask };
  using Place = std::pair<int64_t, int64_t>;  // process and thread

  // What an event without a category is.
  static Kind KindOf(const KinetoEvent& e);
  // Whether a flow of this category joins calls and tasks.
  static bool Joins(std::string_view category);

  void AddFlow(bool begins, int64_t id, Place place, int64_t at_ns);
  // Rows come into the trace at the end: only then their correlation is known.
  void Add(const TraceBuilder::Event& row, int64_t connection, Place place);
  // Adds the rows. A trace that holds any does not say when the host waited for the device.
  void Finish(TraceBuilder& builder);

 private:
  struct Row {
    TraceBuilder::Event event;
    int64_t connection;  // KinetoArgs::kAbsent: none
    Place place;
  };
  struct FlowEnd {
    int64_t id;
    Place place;
    int64_t at_ns;
  };
  uint32_t CallAt(Place place, int64_t at_ns) const;

  std::vector<Row> calls_, tasks_;
  std::vector<FlowEnd> begins_, ends_;
};

}  // namespace daydream
