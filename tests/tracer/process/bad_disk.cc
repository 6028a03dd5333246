// To be preloaded: a disk that stalls or fills up, for files called *.ddtrace only.
//   BAD_DISK_STALL_MS=N    the first write takes so long
//   BAD_DISK_ROOM=N        after N bytes there is no space left
//   BAD_DISK_NO_RESERVE=1  it cannot reserve space ahead
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

namespace {

bool IsTrace(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return false;
  path[n] = '\0';
  return strstr(path, ".ddtrace") != nullptr;
}

long Number(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? -1 : atol(text);
}

std::atomic<long> g_written{0};

}  // namespace

extern "C" int fallocate(int file, int mode, off_t offset, off_t size) {
  using Reserve = int (*)(int, int, off_t, off_t);
  static const auto real = reinterpret_cast<Reserve>(dlsym(RTLD_NEXT, "fallocate"));
  static const long room = Number("BAD_DISK_ROOM"), none = Number("BAD_DISK_NO_RESERVE");
  if (none < 0 && (room < 0 || !IsTrace(file) || offset + size <= room)) {
    return real(file, mode, offset, size);
  }
  errno = none < 0 ? ENOSPC : EOPNOTSUPP;
  return -1;
}

extern "C" ssize_t write(int file, const void* bytes, size_t size) {
  using Write = ssize_t (*)(int, const void*, size_t);
  static const auto real = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "write"));
  static const long stall_ms = Number("BAD_DISK_STALL_MS"), room = Number("BAD_DISK_ROOM");
  if ((stall_ms < 0 && room < 0) || !IsTrace(file)) return real(file, bytes, size);
  static std::atomic<bool> stalled{false};
  if (stall_ms > 0 && !stalled.exchange(true)) usleep(static_cast<useconds_t>(stall_ms) * 1000);
  if (room < 0) return real(file, bytes, size);
  const long left = room - g_written;
  if (left <= 0) {
    errno = ENOSPC;
    return -1;
  }
  const ssize_t n = real(file, bytes, size < static_cast<size_t>(left) ? size : left);
  if (n > 0) g_written += n;
  return n;
}
