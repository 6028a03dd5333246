// Memory and threads are the machine's, and end: what is needed, what is free, and errors instead
// of an abort when there is no more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "tools/diagnostics.h"
#include "tools/session.h"
#include "trace/trace.h"

namespace daydream {

// Bytes that this process may still take: what the system says is available, within the limits of
// its control group and of `ulimit -v`. 0 when nothing of that can be read.
uint64_t FreeMemory();

// Bytes that building and replaying `rows` events on `threads` takes at most, on top of the trace
// itself. Measured; see the source.
uint64_t GraphMemory(uint64_t rows, unsigned threads);

// W0120 when that is more than is free: the system may end the program without a word. `traces` are
// those of ranks that are played together, or one.
void WarnAboutMemory(std::span<const std::shared_ptr<const Trace>> traces, Session& session);

// `work`, with E0121 for threads that cannot be made. Where there is no memory for it, `fail` is
// told E0120, and the program ends with what that returns: a map that got none to grow is broken,
// and would end it as it is torn down. Without `fail`, E0120 is returned.
using Failure = std::function<Exit(const absl::Status&)>;
absl::StatusOr<Exit> WithinMemory(const Session& session, const Failure& fail,
                                  const std::function<absl::StatusOr<Exit>()>& work);

}  // namespace daydream
