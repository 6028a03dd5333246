// A file that several processes may add lines to.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace daydream {

// An open file, closed (and with that unlocked) at the end. Failures carry `code`.
class LockedFile {
 public:
  // `flags` of open(2). A link is followed for reading only.
  LockedFile(std::string path, int flags, std::string code);
  ~LockedFile();
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  absl::Status status() const;  // of opening it
  bool Lock();                  // waits for it
  bool TryLock();

  // At most `largest` bytes. Fails for what is no plain file.
  absl::StatusOr<std::string> ReadAll(size_t largest);
  // All of `bytes` at the end, or nothing. They stay if the process dies, but the machine may lose
  // them. A process that is killed meanwhile leaves a part: who reads has to expect that.
  absl::Status Append(std::string_view bytes);
  absl::Status Sync();  // on the disk
  // Cuts the file to `size` bytes.
  absl::Status Truncate(size_t size);

 private:
  absl::Status Failed(std::string what, std::string fix) const;
  absl::Status CannotWrite() const;

  std::string path_, code_;
  int fd_ = -1, error_ = 0;
};

}  // namespace daydream
