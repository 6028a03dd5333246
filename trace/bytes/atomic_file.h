// The one way in which results become files: a file appears whole or not at all. The bytes go to a
// file without a name (or, where the file system has none, a name that nobody has) in the same
// folder, are synced, and then get the name. A process that is killed at any point leaves what was
// there before.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

class AtomicFile {
 public:
  // Fails with AlreadyExists when there is something at `path` and `overwrite` is false. A link is
  // never followed: it is replaced itself. Devices and pipes cannot be replaced and are written as
  // they are. What is replaced hands on its permissions.
  static absl::StatusOr<AtomicFile> Create(const std::string& path, bool overwrite);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Leaves nothing behind unless Commit() succeeded.
  ~AtomicFile();

  absl::Status Append(std::string_view bytes);
  absl::Status Commit();

  // For the handler of a signal that ends the process (it makes system calls only): takes away what
  // the file begun last has left under a name that nobody asked for.
  static void UnlinkTemporary();

 private:
  AtomicFile() = default;
  absl::Status Failure(std::string_view doing, int error) const;
  absl::Status Open(const std::string& folder);
  absl::Status GiveName();

  int fd_ = -1;
  std::string path_, temporary_;
  bool overwrite_ = false;
  bool device_ = false;  // `path_` itself is open
  bool named_ = false;   // there is a file `temporary_`
  int mode_ = -1;        // permissions to keep; -1: those of a new file
};

// The name of a file is on the disk when its folder is. Where that cannot be said, nothing is lost
// but time.
void SyncFolderOf(const std::string& path);

}  // namespace daydream
