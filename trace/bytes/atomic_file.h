// A file that appears whole or not at all: written under a temporary name beside its place,
// synced, then renamed.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

class AtomicFile {
 public:
  // Fails with AlreadyExists when there is something at `path` and `overwrite` is false.
  static absl::StatusOr<AtomicFile> Create(const std::string& path, bool overwrite);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Removes the temporary file unless Commit() succeeded.
  ~AtomicFile();

  absl::Status Append(std::string_view bytes);
  absl::Status Commit();

 private:
  AtomicFile(int fd, std::string path, std::string temporary, bool overwrite);
  absl::Status Failure(std::string_view doing) const;

  int fd_ = -1;
  std::string path_, temporary_;
  bool overwrite_ = false;
};

}  // namespace daydream
