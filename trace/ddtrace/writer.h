// Writes a Trace in our own format, docs/formats.md.
#pragma once

#include <string>

#include "base/status.h"
#include "trace/trace.h"

namespace daydream {

struct DdtraceOptions {
  bool overwrite = false;        // replace a file that is there
  size_t rows_per_chunk = 4096;  // at most 65536; what is lost when one chunk is damaged
};

// Writes `trace` to `path`: under a temporary name first, then synced and renamed, so that a
// reader sees the whole file or none. Fails with AlreadyExists rather than replace a file.
absl::Status WriteDdtrace(const Trace& trace, const std::string& path,
                          const DdtraceOptions& options = {});

// The bytes that WriteDdtrace would write. Equal traces give equal bytes.
absl::StatusOr<std::string> SerializeDdtrace(const Trace& trace,
                                             const DdtraceOptions& options = {});

}  // namespace daydream
