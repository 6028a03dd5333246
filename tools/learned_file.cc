#include "tools/learned_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace daydream {
namespace {

constexpr size_t kLargest = 16'000'000;

absl::Status Failed(const std::string& path, std::string what, std::string fix) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0110", .what = std::move(what), .where = path, .fix = std::move(fix)});
}

// An open file, closed (and with that unlocked) at the end.
class File {
 public:
  File(const std::string& path, int flags) : path_(path) {
    fd_ = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644);
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool ok() const { return fd_ >= 0; }
  bool Lock() { return flock(fd_, LOCK_EX) == 0; }

  absl::StatusOr<std::string> ReadAll() {
    struct stat info {};
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
      return Failed(path_, "not a plain file", "name a text file");
    }
    std::string text;
    char buffer[65536];
    for (;;) {
      ssize_t got = read(fd_, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Failed(path_, std::strerror(errno), "check the file");
      if (got == 0) return text;
      text.append(buffer, static_cast<size_t>(got));
      if (text.size() > kLargest) {
        return Failed(path_, "larger than 16 MB", "keep the rows that matter");
      }
    }
  }

  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t put = write(fd_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(put));
    }
    return fsync(fd_) == 0;
  }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace

absl::StatusOr<std::vector<LearnedRow>> ReadLearned(const std::string& path) {
  File file(path, O_RDONLY);
  if (!file.ok()) {
    return Failed(path, fmt::format("cannot be read: {}", std::strerror(errno)),
                  "make it with --measured FILE --learn FILE");
  }
  DD_ASSIGN_OR_RETURN(std::string text, file.ReadAll());
  return ParseLearned(text, path);
}

absl::Status AppendLearned(const std::string& path, const LearnedRow& row) {
  File file(path, O_RDWR | O_CREAT | O_APPEND);
  if (!file.ok() || !file.Lock()) {
    return Failed(path, fmt::format("cannot be written: {}", std::strerror(errno)),
                  "name a file in a folder that can be written");
  }
  DD_ASSIGN_OR_RETURN(std::string text, file.ReadAll());
  std::string line = FormatLearnedRow(row) + "\n";
  if (text.empty()) {
    line = fmt::format("{}\n{}", kLearnedHeader, line);
  } else {
    DD_RETURN_IF_ERROR(ParseLearned(text, path).status());
    if (!text.ends_with('\n')) line = "\n" + line;
  }
  if (!file.Write(line)) {
    return Failed(path, fmt::format("cannot be written: {}", std::strerror(errno)),
                  "check the disk");
  }
  return absl::OkStatus();
}

}  // namespace daydream
