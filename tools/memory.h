// Memory and threads are the machine's, and end: what is needed, what is free, and errors instead
// of an abort when there is no more.
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "tools/diagnostics.h"
#include "tools/session.h"
#include "trace/trace.h"

namespace daydream {

// Bytes that this process may still take: what the system says is available, within the limits of
// its control group and of `ulimit -v`. 0 when nothing of that can be read.
uint64_t FreeMemory();

// Bytes that building and replaying take on top of the trace itself. Measured; see the source.
uint64_t GraphMemory(const Trace& trace);

// W0120 when that is more than is free: the system may end the program without a word.
void WarnAboutMemory(const Trace& trace, Session& session);

// `work`, with E0120 for std::bad_alloc and E0121 for threads that cannot be made.
absl::StatusOr<Exit> WithinMemory(const Session& session,
                                  const std::function<absl::StatusOr<Exit>()>& work);

}  // namespace daydream
