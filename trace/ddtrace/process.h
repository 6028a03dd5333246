// Which process a .ddtrace file of the recorder tells about: enough to see which files are of one
// run, and how the clocks of their machines differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "trace/bytes/source.h"

namespace daydream {

struct RecordedProcess {
  std::string session;  // 16 bytes, the same for all processes of one `daydream trace`; "": unknown
  std::string host;     // "": unknown
  std::string boot;     // of the machine: processes of one boot have one clock; "": unknown
  // The wall clock minus the clock of the recording.
  std::optional<int64_t> wall_offset_ns;
};

// Reads as far as needed. A file without such facts (converted, another format, damaged) has none.
absl::StatusOr<RecordedProcess> ReadRecordedProcess(ByteSource& source);

}  // namespace daydream
