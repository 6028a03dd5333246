#include "trace/bytes/atomic_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace daydream {
namespace {

absl::Status Exists(const std::string& path) {
  return MakeStatus(absl::StatusCode::kAlreadyExists,
                    {.what = fmt::format("{} is there already", path),
                     .effect = "nothing was written",
                     .fix = "choose another name, or ask for the file to be replaced"});
}

}  // namespace

AtomicFile::AtomicFile(int fd, std::string path, std::string temporary, bool overwrite)
    : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)), overwrite_(overwrite) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      overwrite_(other.overwrite_) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

absl::Status AtomicFile::Failure(std::string_view doing) const {
  const int error = errno;
  return MakeStatus(absl::StatusCode::kUnavailable,
                    {.what = fmt::format("cannot {} {}", doing, path_),
                     .why = std::strerror(error),
                     .effect = "nothing was written"});
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, bool overwrite) {
  struct stat info;
  if (!overwrite && lstat(path.c_str(), &info) == 0) return Exists(path);
  std::string temporary = fmt::format("{}.partial-{}", path, getpid());
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  AtomicFile file(fd, path, std::move(temporary), overwrite);
  if (fd < 0) return file.Failure("write");
  return file;
}

absl::Status AtomicFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure("write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  // Pipes and some network file systems cannot sync; the bytes are written all the same.
  if (fsync(fd_) != 0 && errno != EINVAL && errno != ENOSYS && errno != EROFS) {
    return Failure("sync");
  }
  if (overwrite_) {
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return Failure("rename to");
  } else if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) !=
             0) {
    if (errno == EEXIST) return Exists(path_);
    // File systems without an exclusive rename: a hard link is exclusive as well.
    if (link(temporary_.c_str(), path_.c_str()) != 0) {
      return errno == EEXIST ? Exists(path_) : Failure("rename to");
    }
    unlink(temporary_.c_str());
  }
  close(std::exchange(fd_, -1));
  return absl::OkStatus();
}

}  // namespace daydream
