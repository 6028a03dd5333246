// What PyTorch's allocator did, from its memory snapshot (torch.cuda.memory._dump_snapshot after
// _record_memory_history), for a trace of the same run.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "trace/trace.h"

namespace daydream {

struct MemoryFound {
  size_t events = 0;     // allocations and releases of the snapshot
  size_t in_window = 0;  // of them while the trace was recorded; these are taken
  size_t replaced = 0;   // allocations that the trace had itself
  // Bytes of the history and of the segments do not fit: totals count from the history's beginning.
  bool inconsistent = false;
};

// `trace` with the allocations of the snapshot in `path`, on the trace's own clock, instead of its
// own. Bytes are those that were asked for (the allocator rounds up to 512). What is allocated and
// reserved afterwards is told backwards from the segments at the snapshot's end: the history is a
// ring that forgets its beginning. Memory that was released but still waits for a stream counts as
// allocated. E0233: no snapshot, a pickle that holds code, or one of another time.
absl::StatusOr<std::shared_ptr<const Trace>> WithMemoryOf(std::shared_ptr<const Trace> trace,
                                                          const std::string& path,
                                                          MemoryFound* found);
// The same for a file in memory; `name` stands in for its name.
absl::StatusOr<std::shared_ptr<const Trace>> WithMemoryIn(std::shared_ptr<const Trace> trace,
                                                          std::string_view bytes,
                                                          const std::string& name,
                                                          MemoryFound* found);

}  // namespace daydream
