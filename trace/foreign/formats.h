// Files that are recognised only to say what they are and what to do next. Nothing of them is read
// but their first bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

struct ForeignFormat {
  std::string_view what;  // "an Nsight Systems report"
  std::string_view why;   // why it cannot be read
  std::string_view fix;   // the next command; {file} and {stem} stand for the file's path
  bool (*is)(std::string_view head) = nullptr;
};

// The format of a file that begins with `head` (the more the better, 64 KiB are plenty), or
// nullptr.
const ForeignFormat* FindForeign(std::string_view head);
// E0204. `path`: as it was given, so that the next command finds it.
absl::Status ForeignError(const ForeignFormat& format, std::string_view head,
                          const std::string& name, const std::string& path);

// What `nsys export` turns into an SQLite file.
bool IsNsysReport(std::string_view head);

// E0204 when the folder holds reports of Nsight Systems, or the tables of one as Parquet or Arrow
// files, else OK.
absl::Status CheckFolder(const std::string& folder);

}  // namespace daydream
