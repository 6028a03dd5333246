// JSON that this program wrote to a file, to be read again: answers and sweeps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

// What is looked for in a file, for errors.
struct SavedKind {
  std::string_view what;  // "prediction"
  std::string_view fix;   // the command that writes one
};

// Whether `path` is a regular file that begins as JSON of `schema` ("daydream.whatif/1"). Nothing
// is taken out of a pipe.
bool IsSavedJson(const std::string& path, std::string_view schema);

// The text of `path`. E0215 when it is larger than 64 MiB, or not JSON from its first byte to its
// last.
absl::StatusOr<std::string> ReadSavedJson(const std::string& path, const SavedKind& kind);

// E0215: nothing of `kind` in `path`.
absl::Status NotSaved(const std::string& path, const SavedKind& kind, std::string why);

// Where `text` stops to be one JSON value; none where it is one. Containers go 64 deep at most.
std::optional<size_t> JsonFault(std::string_view text);

}  // namespace daydream
