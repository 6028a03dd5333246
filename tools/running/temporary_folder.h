// A folder of our own for what others have to read or write as files.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>

#include "base/status.h"

namespace daydream {

// It is gone with this object, and with the process where a signal ends that (tools/running/
// interrupt.h).
class TemporaryFolder {
 public:
  // In $TMPDIR, or /tmp. Fails with Unavailable.
  static absl::StatusOr<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept = default;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return *path_; }

  // A child that writes into it, 0 = none: a signal that ends this process ends that, too. One at a
  // time.
  static void SetWriter(pid_t child);

  // For the handler: makes system calls only. Ends the writer, then removes all folders.
  static void RemoveAll();

 private:
  explicit TemporaryFolder(std::filesystem::path path);
  std::unique_ptr<const std::filesystem::path> path_;  // where a handler finds it
};

}  // namespace daydream
