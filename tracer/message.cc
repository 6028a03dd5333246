#include "tracer/message.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace daydream::tracer {
namespace {

std::atomic<bool> g_speak{true}, g_quiet{false};

void Print(std::string_view text) {
  // Nobody reads any more: writing would raise SIGPIPE in the program's thread. The pipe is full:
  // it would wait.
  pollfd err{STDERR_FILENO, POLLOUT, 0};
  if (poll(&err, 1, 0) != 1 || err.revents != POLLOUT) return;
  std::string line = "daydream: " + std::string(text) + "\n";
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void SetMessages(bool speak, bool quiet) {
  g_speak = speak;
  g_quiet = quiet;
}

void Warn(std::string_view text) {
  if (g_speak) Print(text);
}

void Note(std::string_view text) {
  if (g_speak && !g_quiet) Print(text);
}

}  // namespace daydream::tracer
