// --convert: reports of Nsight Systems, exported by its own program.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "tools/session.h"

namespace daydream {

// A folder of our own that is gone with this object.
class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Whether the file begins like a report. False when it cannot be read.
bool IsReport(const std::string& path);

// Runs `nsys export` on the report and gives the SQLite file in `folder`. Says so before. E0231:
// there is no nsys on the PATH, or it failed.
absl::StatusOr<std::string> ExportReport(const std::string& report, const TemporaryFolder& folder,
                                         Session& session);

}  // namespace daydream
