#include "trace/bytes/source.h"

#include <fcntl.h>
#include <sys/mman.h>
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
  std::string_view Mapped() const override { return bytes_; }
  int64_t consumed() const override { return static_cast<int64_t>(done_); }
  int64_t total() const override { return static_cast<int64_t>(bytes_.size()); }

 protected:
  absl::StatusOr<std::string_view> Produce() override {
    std::string_view chunk = bytes_.substr(done_, kChunkBytes);
    done_ += chunk.size();
    return chunk;
  }
  const std::string_view bytes_;
  size_t done_ = 0;
};

// A mapped file. Pages already read are given back, so that they do not count as ours.
class MappedSource : public MemorySource {
 public:
  MappedSource(std::string_view bytes, std::string path, int64_t limit)
      : MemorySource(bytes, BaseName(path), limit), path_(std::move(path)) {
    madvise(base(), bytes_.size(), MADV_SEQUENTIAL);
  }
  ~MappedSource() override { munmap(base(), bytes_.size()); }
  std::string Path() const override { return path_; }

 protected:
  absl::StatusOr<std::string_view> Produce() override {
    constexpr size_t kReleaseBytes = size_t{8} << 20;
    if (done_ - released_ >= kReleaseBytes) {
      size_t bytes = (done_ - released_) & ~(kReleaseBytes - 1);
      madvise(base() + released_, bytes, MADV_DONTNEED);
      released_ += bytes;
    }
    return MemorySource::Produce();
  }

 private:
  char* base() const { return const_cast<char*>(bytes_.data()); }
  const std::string path_;
  size_t released_ = 0;
};

// A pipe, a terminal or another file that cannot be mapped.
class StreamSource : public ChunkedSource {
 public:
  StreamSource(FileDescriptor fd, std::string name, int64_t limit)
      : ChunkedSource(std::move(name), limit), fd_(std::move(fd)), buffer_(kChunkBytes, '\0') {}
  int64_t consumed() const override { return consumed_; }
  int64_t total() const override { return -1; }

 protected:
  absl::StatusOr<std::string_view> Produce() override {
    size_t filled = 0;
    while (filled < buffer_.size()) {
      ssize_t n = read(fd_.get(), buffer_.data() + filled, buffer_.size() - filled);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return CannotRead(name_, errno);
      if (n == 0) break;
      filled += static_cast<size_t>(n);
    }
    consumed_ += static_cast<int64_t>(filled);
    return std::string_view(buffer_.data(), filled);
  }

 private:
  FileDescriptor fd_;
  std::string buffer_;
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
  auto bytes = static_cast<size_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || bytes == 0) {
    return std::make_unique<StreamSource>(std::move(fd), BaseName(path), limit);
  }
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return std::make_unique<StreamSource>(std::move(fd), BaseName(path), limit);
  }
  return std::make_unique<MappedSource>(std::string_view(static_cast<char*>(memory), bytes), path,
                                        limit);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path, int64_t limit) {
  DD_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> plain, OpenPlain(path, limit));
  DD_ASSIGN_OR_RETURN(std::string_view head, plain->Peek());
  if (head.empty()) return EmptyInput(path);
  return Unpacked(std::move(plain), limit);
}

std::unique_ptr<ByteSource> OpenBytes(std::string_view bytes, std::string name, int64_t limit) {
  auto source = Unpacked(std::make_unique<MemorySource>(bytes, std::move(name), limit), limit);
  return std::move(source).value();  // reading memory does not fail
}

}  // namespace daydream
