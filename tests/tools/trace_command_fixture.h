// Runs `daydream trace` as a user does: the real program and the real recorder on a fake driver and
// a fake CUPTI (tests/tracer/fake_cuda).
#pragma once

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/read_all.h"
#include "trace/importer.h"

namespace daydream {

namespace fs = std::filesystem;

inline const std::string kFakes = DAYDREAM_BINARY_DIR "/tests/tracer/fake_cuda";
inline const std::string kProgram = kFakes + "/gpu_program";
inline const std::string kRecorder = DAYDREAM_BINARY_DIR "/tracer/libdaydream_inject.so";
inline const std::string kWithGpu = "LD_LIBRARY_PATH=" + kFakes;
// Waiting for something that must happen ends in failure after this.
constexpr auto kPatience = std::chrono::seconds(60);

template <class Condition>
bool WaitFor(Condition condition) {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

struct Result {
  int exit = -1;
  std::string out, err;
};

class TraceCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (access(DAYDREAM_BINARY, X_OK) != 0) GTEST_SKIP() << "not built: " << DAYDREAM_BINARY;
    if (!fs::exists(kRecorder)) GTEST_SKIP() << "this build has no recorder";
    std::string pattern = testing::TempDir() + "daydream_trace_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::create_directory(folder_ + "/w");
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // Runs a shell line in the folder w; `daydream` in it is the program under test.
  Result Run(const std::string& line, const std::string& environment = kWithGpu) {
    std::string script =
        fmt::format("cd '{0}/w' && daydream() {{ {1} '{2}' \"$@\"; }} && {3} >../out 2>../err",
                    folder_, environment, DAYDREAM_BINARY, line);
    int status = std::system(script.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(folder_ + "/out"),
            ReadAll(folder_ + "/err")};
  }

  // Starts `daydream trace ARGUMENTS` and returns its process id.
  pid_t Start(const std::vector<std::string>& arguments) {
    pid_t child = fork();
    if (child != 0) return child;
    Execute(arguments);
  }

  [[noreturn]] void Execute(const std::vector<std::string>& arguments) {
    setenv("LD_LIBRARY_PATH", kFakes.c_str(), 1);
    std::vector<std::string> words = {DAYDREAM_BINARY, "trace"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    if (chdir((folder_ + "/w").c_str()) != 0) _exit(90);
    execv(argv[0], argv.data());
    _exit(91);
  }

  static int End(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::vector<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ + "/w")) {
      names.insert(entry.path().filename().string());
    }
    return {names.begin(), names.end()};
  }
  std::string Path(const std::string& name) const { return folder_ + "/w/" + name; }
  size_t Kernels(const std::string& name) const {
    auto trace = ImportFile(Path(name));
    if (!trace.ok()) return 0;
    const auto& kinds = (*trace)->kind;
    return static_cast<size_t>(std::count(kinds.begin(), kinds.end(), EventKind::kKernel));
  }

  // Of all recordings in a folder that processes still write to.
  size_t KernelsIn(const std::string& folder) const {
    size_t kernels = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(Path(folder), error)) {
      if (entry.path().extension() == ".ddtrace") {
        kernels += Kernels(folder + "/" + entry.path().filename().string());
      }
    }
    return kernels;
  }

  std::string folder_;
};

}  // namespace daydream
