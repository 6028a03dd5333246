#include "tools/running/temporary_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "tools/running/interrupt.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// More at once than any command has; a handler does not know of others.
constexpr size_t kMostFolders = 16;
constexpr int kDeepest = 8;
constexpr int kMostTries = 100;  // other threads may go on writing
// What is asked to end gets a second for it.
constexpr timespec kLook = {.tv_sec = 0, .tv_nsec = 10'000'000};
constexpr int kMostLooks = 100;

// What a handler can reach is global.
std::array<std::atomic<const char*>, kMostFolders> folders{};
std::atomic<pid_t> writer = 0;

void Note(const char* path) {
  for (std::atomic<const char*>& place : folders) {
    const char* none = nullptr;
    if (place.compare_exchange_strong(none, path)) return;
  }
}

void Forget(const char* path) {
  for (std::atomic<const char*>& place : folders) {
    const char* known = path;
    if (place.compare_exchange_strong(known, nullptr)) return AwaitHandlers();
  }
}

void EndWriter() {
  const pid_t child = writer.exchange(0);
  if (child <= 0 || kill(child, SIGTERM) != 0) return;
  for (int i = 0; i < kMostLooks; ++i) {
    if (waitpid(child, nullptr, WNOHANG) != 0) return;
    nanosleep(&kLook, nullptr);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

void RemoveInHandler(int folder, const char* name, int deepest) {
  const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  alignas(dirent64) std::array<char, 4096> entries;
  ssize_t size = 0;
  while ((size = getdents64(fd, entries.data(), entries.size())) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      const char* file = entry->d_name;
      if (std::strcmp(file, ".") == 0 || std::strcmp(file, "..") == 0) continue;
      if (unlinkat(fd, file, 0) != 0 && deepest > 0) RemoveInHandler(fd, file, deepest - 1);
    }
  }
  close(fd);
  unlinkat(folder, name, AT_REMOVEDIR);
}

}  // namespace

TemporaryFolder::TemporaryFolder(fs::path path)
    : path_(std::make_unique<const fs::path>(std::move(path))) {
  Note(path_->c_str());
}

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "daydream-XXXXXX").string();
  // On this thread no signal comes between the folder and the note of it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const bool made = !error && mkdtemp(name.data()) != nullptr;
  const int why = error ? error.value() : errno;
  std::optional<TemporaryFolder> folder;
  if (made) folder.emplace(TemporaryFolder(name));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (made) return *std::move(folder);
  return MakeStatus(absl::StatusCode::kUnavailable,
                    {.code = "E0231",
                     .what = "no temporary folder can be made",
                     .where = name,
                     .why = std::strerror(why),
                     .fix = "set TMPDIR to a folder with room for the export"});
}

TemporaryFolder::~TemporaryFolder() {
  if (path_ == nullptr) return;
  std::error_code error;
  fs::remove_all(*path_, error);
  Forget(path_->c_str());
}

void TemporaryFolder::SetWriter(pid_t child) { writer.store(child); }

void TemporaryFolder::RemoveAll() {
  EndWriter();
  for (const std::atomic<const char*>& place : folders) {
    const char* path = place.load();
    if (path == nullptr) continue;
    for (int i = 0; i < kMostTries && access(path, F_OK) == 0; ++i) {
      RemoveInHandler(AT_FDCWD, path, kDeepest);
    }
  }
}

}  // namespace daydream
