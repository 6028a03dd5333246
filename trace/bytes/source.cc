#include "trace/bytes/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "trace/bytes/chunked_source.h"

namespace daydream {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (fd_ > STDERR_FILENO) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status CannotRead(const std::string& path, int error) {
  return MakeStatus(absl::StatusCode::kPermissionDenied,
                    {.code = "E0209",
                     .what = "this file cannot be read",
                     .where = path,
                     .why = std::strerror(error),
                     .fix = "check its permissions with `ls -l`"});
}

absl::Status EmptyInput(const std::string& path) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0208",
       .what = "this file is empty",
       .where = path,
       .why = "the profiler was stopped before it wrote anything, or the disk was full",
       .fix = "record the trace again"});
}

std::string BaseName(const std::string& path) {
  size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Bytes in memory, in the caller's hands.
class MemorySource : public ChunkedSource {
 public:
  MemorySource(std::string_view bytes, std::string name, int64_t limit)
      : ChunkedSource(std::move(name), limit), bytes_(bytes) {}
  std::string_view InMemory() const override { return bytes_; }
  int64_t consumed() const override { return static_cast<int64_t>(done_); }
  int64_t total() const override { return static_cast<int64_t>(bytes_.size()); }

 protected:
  absl::StatusOr<std::string_view> Produce() override {
    std::string_view chunk = bytes_.substr(done_, kChunkBytes);
    done_ += chunk.size();
    return chunk;
  }

 private:
  const std::string_view bytes_;
  size_t done_ = 0;
};

absl::Status BecameShorter(const std::string& name, int64_t had, int64_t has) {
  // Not DataLoss: what was read of a file that somebody is changing is worth nothing.
  return MakeStatus(absl::StatusCode::kAborted,
                    {.code = "E0213",
                     .what = "this file became shorter while it was read",
                     .where = name,
                     .why = fmt::format("it had {} bytes and ended after {}", had, has),
                     .effect = "nothing is predicted from a part of it",
                     .fix = "wait until whatever writes the file is done, and try again"});
}

// A file or a pipe, read in chunks. Not mapped: a mapped file that somebody cuts ends the process.
class StreamSource : public ChunkedSource {
 public:
  // `path`: of a file; "" for what cannot be opened again. `total`: its bytes when it was opened;
  // -1 for a pipe.
  StreamSource(FileDescriptor fd, std::string name, int64_t limit, std::string path = "",
               int64_t total = -1)
      : ChunkedSource(std::move(name), limit),
        fd_(std::move(fd)),
        path_(std::move(path)),
        total_(total),
        buffer_(std::make_unique_for_overwrite<char[]>(kChunkBytes)) {
    if (total_ > 0) posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  int64_t consumed() const override { return consumed_; }
  int64_t total() const override { return total_; }
  std::string Path() const override { return path_; }

 protected:
  absl::StatusOr<std::string_view> Produce() override {
    size_t filled = 0;
    while (filled < kChunkBytes) {
      ssize_t n = read(fd_.get(), buffer_.get() + filled, kChunkBytes - filled);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return CannotRead(name_, errno);
      if (n == 0) break;
      filled += static_cast<size_t>(n);
    }
    consumed_ += static_cast<int64_t>(filled);
    if (filled == 0 && consumed_ < total_) return BecameShorter(name_, total_, consumed_);
    return std::string_view(buffer_.get(), filled);
  }

 private:
  FileDescriptor fd_;
  const std::string path_;
  const int64_t total_;
  std::unique_ptr<char[]> buffer_;
  int64_t consumed_ = 0;
};

// Puts the unpacker that the first bytes ask for in front of `plain`.
absl::StatusOr<std::unique_ptr<ByteSource>> Unpacked(std::unique_ptr<ByteSource> plain,
                                                     int64_t limit) {
  DD_ASSIGN_OR_RETURN(std::string_view head, plain->Peek());
  if (head.starts_with("\x1f\x8b")) return MakeGzipSource(std::move(plain), limit);
  if (head.starts_with("\x28\xb5\x2f\xfd")) return MakeZstdSource(std::move(plain), limit);
  return plain;
}

// ": it holds a.ddtrace, b.ddtrace and 6 others".
std::string TracesIn(const std::string& folder) {
  constexpr size_t kShown = 8;
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".ddtrace")) names.push_back(std::move(name));
  }
  if (names.empty()) return "";
  std::sort(names.begin(), names.end());
  std::string text = ": it holds ";
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kShown) text += fmt::format(" and {} others", names.size() - kShown);
  return text;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenPlain(const std::string& path, int64_t limit) {
  if (path == "-") {
    return std::make_unique<StreamSource>(FileDescriptor(STDIN_FILENO), "standard input", limit);
  }
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return MakeStatus(absl::StatusCode::kNotFound, {.code = "E0201",
                                                    .what = "there is no such file",
                                                    .where = path,
                                                    .fix = "check the path with `ls`"});
  }
  if (fd.get() < 0) return CannotRead(path, errno);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return CannotRead(path, errno);
  if (S_ISDIR(info.st_mode)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0202",
                       .what = "this is a directory, not a trace",
                       .where = path,
                       .why = "one file is one process" + TracesIn(path),
                       .fix = "name a file in it: a trace of one rank"});
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    return std::make_unique<StreamSource>(std::move(fd), BaseName(path), limit);
  }
  return std::make_unique<StreamSource>(std::move(fd), BaseName(path), limit, path, info.st_size);
}

}  // namespace

absl::StatusOr<std::string> ReadAll(ByteSource& source,
                                    const std::function<void(int64_t, int64_t)>& progress) {
  std::string bytes;
  for (;;) {
    DD_ASSIGN_OR_RETURN(std::string_view chunk, source.Next());
    if (chunk.empty()) return bytes;
    bytes += chunk;
    if (progress) progress(source.consumed(), source.total());
  }
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path, int64_t limit) {
  DD_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> plain, OpenPlain(path, limit));
  DD_ASSIGN_OR_RETURN(std::string_view head, plain->Peek());
  if (head.empty()) return EmptyInput(path);
  DD_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, Unpacked(std::move(plain), limit));
  if (const auto inside = source->Peek(); inside.ok() && inside->empty()) return EmptyInput(path);
  return source;
}

std::unique_ptr<ByteSource> OpenBytes(std::string_view bytes, std::string name, int64_t limit) {
  auto source = Unpacked(std::make_unique<MemorySource>(bytes, std::move(name), limit), limit);
  return std::move(source).value();  // reading memory does not fail
}

}  // namespace daydream
