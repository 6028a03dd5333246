// The flags of `daydream trace` and what they mean to the recorder, which gets its settings through
// the environment of the recorded processes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/flags.h"
#include "tools/record/machine.h"

namespace daydream {

std::span<const Flag> RecordFlags();

struct RecordOptions {
  std::string settings;            // value of DAYDREAM_RECORD: "capture=steps;warmup=10;..."
  bool python = true;              // arm the Python side
  bool nvtx = true;                // listen to NVTX
  std::vector<std::string> extra;  // NAME=VALUE of -e
};

// E0104 for values that are malformed or contradict each other.
absl::StatusOr<RecordOptions> ParseRecordOptions(const Args& args);

// An environment as a sorted map, so that a later entry replaces an earlier one.
using Environment = std::map<std::string, std::string, std::less<>>;
Environment CurrentEnvironment();
// What `own` becomes for the command: -e first, then the recorder's own variables. E0501 when
// another tool is to be injected into the command already.
absl::StatusOr<Environment> RecordingEnvironment(const Environment& own,
                                                 const RecordOptions& options,
                                                 const RecorderFiles& files,
                                                 std::string_view session_folder,
                                                 std::string_view session_id);
std::vector<std::string> AsList(const Environment& environment);

// The first folder of LD_LIBRARY_PATH that holds stubs of the driver, or "": programs that find
// those instead of the driver cannot use the GPU.
std::string StubFolder(const Environment& environment);

}  // namespace daydream
