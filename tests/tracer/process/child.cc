#include "tests/tracer/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

extern char** environ;

namespace daydream::tracer {
namespace {

constexpr int kPatienceMs = 60'000;

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Session::Session(std::string record, std::string faults) {
  std::filesystem::create_directory(folder());
  environment = {{"CUDA_INJECTION64_PATH", DAYDREAM_INJECT_LIBRARY},
                 {"NVTX_INJECTION64_PATH", DAYDREAM_INJECT_LIBRARY},
                 {"DAYDREAM_INJECT", DAYDREAM_INJECT_LIBRARY},
                 {"DAYDREAM_SESSION_DIR", folder()},
                 {"DAYDREAM_SESSION_ID", "000102030405060708090a0b0c0d0e0f"},
                 {"DAYDREAM_RECORD", std::move(record)},
                 {"FAKE_CUPTI", std::move(faults)},
                 {"LD_LIBRARY_PATH", DAYDREAM_FAKE_CUDA},
                 // The programs fork with threads, crash and exit in handlers on purpose.
                 {"TSAN_OPTIONS",
                  "die_after_fork=0:report_signal_unsafe=0:handle_segv=0:atexit_sleep_ms=0:report_"
                  "thread_leaks=0"},
                 {"ASAN_OPTIONS", "handle_segv=0:detect_leaks=0"}};
}

std::vector<std::string> Session::Files() const {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".ddtrace") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Left Session::Run(const std::vector<std::string>& arguments) {
  return Child(*this, arguments).Wait();
}

Child::Child(Session& session, const std::vector<std::string>& arguments) : session_(session) {
  std::vector<std::string> argv = {DAYDREAM_GPU_PROGRAM}, env;
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  for (char** e = environ; *e != nullptr; ++e) {
    std::string text = *e;
    if (!session.environment.contains(text.substr(0, text.find('=')))) env.push_back(text);
  }
  for (const auto& [name, value] : session.environment) env.push_back(name + "=" + value);

  int out[2], err[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  EXPECT_EQ(posix_spawn(&pid_, DAYDREAM_GPU_PROGRAM, &actions, nullptr, Pointers(argv).data(),
                        Pointers(env).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void Child::Kill(int signal) { kill(pid_, signal); }

// False: both pipes are at their end.
bool Child::ReadSome(int timeout_ms) {
  pollfd fds[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (poll(fds, 2, timeout_ms) <= 0) return true;
  char buffer[65536];
  for (int i = 0; i < 2; ++i) {
    if (fds[i].revents == 0) continue;
    ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
    int& fd = i == 0 ? out_ : err_;
    if (n > 0) {
      (i == 0 ? left_.out : left_.err).append(buffer, static_cast<size_t>(n));
    } else {
      close(fd);
      fd = -1;
    }
  }
  return out_ >= 0 || err_ >= 0;
}

bool Child::WaitForLine(const std::string& line) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (std::chrono::steady_clock::now() < until) {
    std::vector<std::string> lines = Split(left_.out);
    if (std::find(lines.begin(), lines.end(), line) != lines.end()) return true;
    if (out_ < 0) return false;
    ReadSome(100);
  }
  return false;
}

Left Child::Wait() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  int status = 0;
  pid_t done = 0;
  while ((done = waitpid(pid_, &status, WNOHANG)) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      ADD_FAILURE() << "the program did not end";
      kill(pid_, SIGKILL);
    }
    if (out_ >= 0 || err_ >= 0) {
      ReadSome(10);
    } else {
      usleep(1000);
    }
  }
  pid_ = -1;
  // A grandchild that lives on may hold the pipes.
  while ((out_ >= 0 || err_ >= 0) && std::chrono::steady_clock::now() < until) {
    if (!ReadSome(1000)) break;
  }
  left_.exited = WIFEXITED(status);
  left_.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  left_.files = session_.Files();
  const bool reported = left_.err.find("Sanitizer") != std::string::npos ||
                        left_.err.find("runtime error:") != std::string::npos;
  EXPECT_FALSE(reported) << left_.err;
  return left_;
}

WrittenFile OnlyFile(const Left& left) {
  EXPECT_EQ(left.files.size(), 1u) << left.err;
  if (left.files.size() != 1) return {};
  return ReadWritten(FileBytes(left.files[0]));
}

Count CountRows(const std::string& path) {
  Count count;
  const std::string bytes = FileBytes(path);
  const std::string_view view = bytes;
  std::vector<pb::Kind> kinds;  // of the signatures
  for (size_t at = kDdtraceMagic.size(); at < bytes.size();) {
    const auto header = DecodeChunkHeader(view.substr(at));
    if (!header) break;
    at += kDdtraceHeaderSize;
    if (at + header->stored_size > bytes.size()) break;
    const auto message = UnpackChunk(*header, view.substr(at, header->stored_size));
    if (!message.ok()) break;
    at += header->stored_size;
    if (header->type == static_cast<uint8_t>(DdtraceChunkType::kIndex)) {
      count.has_index = count.index.ParseFromString(*message);
    }
    if (header->type != static_cast<uint8_t>(DdtraceChunkType::kEvents)) continue;
    pb::EventChunk chunk;
    EXPECT_TRUE(chunk.ParseFromString(*message));
    for (const auto& s : chunk.definitions().signatures()) kinds.push_back(s.kind());
    for (uint32_t used : chunk.rows().signature()) {
      ++count.rows[kinds.at(chunk.rows().used_signature(static_cast<int>(used)))];
    }
    if (chunk.has_loss()) count.loss = chunk.loss();
  }
  return count;
}

std::vector<std::string> Messages(const Left& left) {
  std::vector<std::string> messages;
  for (const std::string& line : Split(left.err)) {
    if (line.starts_with("daydream: ")) messages.push_back(line);
  }
  return messages;
}

}  // namespace daydream::tracer
