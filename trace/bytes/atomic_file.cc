#include "trace/bytes/atomic_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace daydream {
namespace {

constexpr mode_t kNewFile = 0666;  // less the umask
constexpr int kPermissions = 0777;

absl::Status Exists(const std::string& path) {
  return MakeStatus(absl::StatusCode::kAlreadyExists,
                    {.code = "E0105",
                     .what = fmt::format("{} is there already", path),
                     .effect = "nothing was written",
                     .fix = "choose another name, or ask for the file to be replaced"});
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A name beside `path` that no other process and no earlier call has. O_EXCL makes sure of it.
std::string NameBeside(const std::string& path) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("{}.part{}-{:x}", path, getpid(), static_cast<uint64_t>(now) & 0xffffffff);
}

// Path of the temporary file, for handlers of signals. Set before there is such a file.
char last_temporary[4096] = "";

void Remember(const std::string& path) {
  if (path.size() < sizeof last_temporary) {
    std::memcpy(last_temporary, path.c_str(), path.size() + 1);
  }
}

void Forget(const std::string& path) {
  if (path == last_temporary) last_temporary[0] = '\0';
}

std::string OpenFileName(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      overwrite_(other.overwrite_),
      device_(other.device_),
      named_(std::exchange(other.named_, false)),
      mode_(other.mode_) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (named_) unlink(temporary_.c_str());
  if (!temporary_.empty()) Forget(temporary_);
}

void AtomicFile::UnlinkTemporary() {
  if (last_temporary[0] != '\0') unlink(last_temporary);
}

absl::Status AtomicFile::Failure(std::string_view doing, int error) const {
  return MakeStatus(absl::StatusCode::kUnavailable,
                    {.code = "E0105",
                     .what = fmt::format("cannot {} {}", doing, path_),
                     .why = std::strerror(error),
                     .effect = device_ ? "what is behind it may have got a part"
                                       : "what was there before is as it was"});
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, bool overwrite) {
  AtomicFile file;
  file.path_ = path;
  file.overwrite_ = overwrite;
  struct stat target {};
  // /dev/stdout is a link to whatever standard output is, a plain file maybe.
  if (stat(path.c_str(), &target) == 0 && (!S_ISREG(target.st_mode) || path.starts_with("/dev/"))) {
    if (S_ISDIR(target.st_mode)) return file.Failure("write", EISDIR);
    file.device_ = true;
    file.fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (file.fd_ < 0) return file.Failure("write", errno);
    return file;
  }
  struct stat own {};
  if (lstat(path.c_str(), &own) == 0) {
    if (!overwrite) return Exists(path);
    if (S_ISREG(own.st_mode)) file.mode_ = static_cast<int>(own.st_mode) & kPermissions;
  }
  file.temporary_ = NameBeside(path);
  Remember(file.temporary_);
  DD_RETURN_IF_ERROR(file.Open(FolderOf(path)));
  return file;
}

absl::Status AtomicFile::Open(const std::string& folder) {
  // Without /proc a file without a name cannot get one.
  if (access("/proc/self/fd", X_OK) == 0) {
    fd_ = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kNewFile);
  }
  if (fd_ < 0) {
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kNewFile);
    if (fd_ < 0) return Failure("write", errno);
    named_ = true;
  }
  if (mode_ >= 0 && fchmod(fd_, static_cast<mode_t>(mode_)) != 0) return Failure("write", errno);
  return absl::OkStatus();
}

absl::Status AtomicFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure("write", errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::GiveName() {
  const std::string open = OpenFileName(fd_);
  auto link_to = [&](const std::string& name) {
    return named_ ? link(temporary_.c_str(), name.c_str())
                  : linkat(AT_FDCWD, open.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  };
  if (!overwrite_) {
    // File systems without hard links have an exclusive rename, and the other way round.
    if (link_to(path_) == 0) return absl::OkStatus();
    if (errno == EEXIST) return Exists(path_);
    if (!named_ ||
        renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0) {
      return errno == EEXIST ? Exists(path_) : Failure("name", errno);
    }
    named_ = false;
    return absl::OkStatus();
  }
  if (!named_ && link_to(temporary_) != 0) return Failure("name", errno);
  named_ = true;
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Failure("rename to", errno);
  named_ = false;
  return absl::OkStatus();
}

void SyncFolderOf(const std::string& path) {
  const int folder = open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  (void)fsync(folder);
  close(folder);
}

absl::Status AtomicFile::Commit() {
  // Pipes and some network file systems cannot sync; the bytes are written all the same.
  if (fsync(fd_) != 0 && errno != EINVAL && errno != ENOSYS && errno != EROFS) {
    return Failure("sync", errno);
  }
  if (!device_) DD_RETURN_IF_ERROR(GiveName());
  close(std::exchange(fd_, -1));  // fsync() has told what there was to tell
  if (!device_) SyncFolderOf(path_);
  if (named_) unlink(temporary_.c_str());
  named_ = false;
  return absl::OkStatus();
}

}  // namespace daydream
