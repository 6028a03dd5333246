#include "tools/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace daydream {

LockedFile::LockedFile(std::string path, int flags, std::string code)
    : path_(std::move(path)), code_(std::move(code)) {
  // What others can write must not lead us to a file of their choice.
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  fd_ = open(path_.c_str(), flags | O_CLOEXEC | O_NONBLOCK | (writes ? O_NOFOLLOW : 0), 0644);
  if (fd_ < 0) error_ = errno;
}

LockedFile::~LockedFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status LockedFile::Failed(std::string what, std::string fix) const {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = code_, .what = std::move(what), .where = path_, .fix = std::move(fix)});
}

absl::Status LockedFile::CannotWrite() const {
  return Failed(fmt::format("cannot be written: {}", std::strerror(errno)), "check the disk");
}

absl::Status LockedFile::status() const {
  if (fd_ >= 0) return absl::OkStatus();
  if (error_ == ELOOP) return Failed("is a link", "name the file that it leads to");
  return Failed(fmt::format("cannot be opened: {}", std::strerror(error_)),
                "name a file in a folder that can be used");
}

bool LockedFile::Lock() { return flock(fd_, LOCK_EX) == 0; }
bool LockedFile::TryLock() { return flock(fd_, LOCK_EX | LOCK_NB) == 0; }

absl::StatusOr<std::string> LockedFile::ReadAll(size_t largest) {
  struct stat info {};
  if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    return Failed("not a plain file", "name a text file");
  }
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t got = read(fd_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(std::strerror(errno), "check the file");
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > largest) {
      return Failed(fmt::format("larger than {} MB", largest / 1'000'000),
                    "keep the rows that matter");
    }
  }
}

absl::Status LockedFile::Append(std::string_view bytes) {
  struct stat before {};
  if (fstat(fd_, &before) != 0) return CannotWrite();
  while (!bytes.empty()) {
    const ssize_t put = write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (bytes.empty()) return absl::OkStatus();
  absl::Status failed = CannotWrite();
  (void)Truncate(static_cast<size_t>(before.st_size));  // no half lines, where that can be helped
  return failed;
}

absl::Status LockedFile::Sync() { return fsync(fd_) == 0 ? absl::OkStatus() : CannotWrite(); }

absl::Status LockedFile::Truncate(size_t size) {
  return ftruncate(fd_, static_cast<off_t>(size)) == 0 ? absl::OkStatus() : CannotWrite();
}

}  // namespace daydream
