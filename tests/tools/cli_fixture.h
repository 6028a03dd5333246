// Runs the program as users do, in a folder of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/read_all.h"

namespace daydream {

inline constexpr char kExampleTrace[] =
    DAYDREAM_SOURCE_DIR "/examples/launch-bound-synthetic.ddtrace";

struct CliResult {
  int exit = -1;
  std::string out, err;
};

// Without the places where lines end, which prose may have anywhere.
inline std::string OneLine(const std::string& text) {
  std::string out;
  for (char c : text) {
    const char shown = c == '\n' ? ' ' : c;
    if (shown != ' ' || !out.ends_with(' ')) out += shown;
  }
  return out;
}

class CliFixture : public testing::Test {
 protected:
  void SetUp() override {
    if (access(DAYDREAM_BINARY, X_OK) != 0) GTEST_SKIP() << "not built: " << DAYDREAM_BINARY;
    std::string pattern = testing::TempDir() + "daydream_cli_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    // Nobody's own defaults: tests write theirs to Path("daydream/config").
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Runs `daydream ARGS` through the shell.
  CliResult Run(const std::string& args, const std::string& before = "") const {
    return Shell(before + " " DAYDREAM_BINARY " " + args);
  }
  CliResult Shell(const std::string& command) const {
    if (folder_.empty()) {  // else files of all tests would lie in the root
      ADD_FAILURE() << "SetUp() of CliFixture was not called";
      return {};
    }
    int status =
        std::system((command + " >" + Path("out") + " 2>" + Path("err") + " </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(Path("out")),
            ReadAll(Path("err"))};
  }
  // As a shell would start it in a terminal, with its output in the files "out" and "err".
  pid_t Start(const std::vector<std::string>& words) const {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    std::signal(SIGINT, SIG_DFL);
    if (std::freopen(Path("out").c_str(), "w", stdout) == nullptr ||
        std::freopen(Path("err").c_str(), "w", stderr) == nullptr) {
      _exit(99);
    }
    std::vector<char*> argv = {const_cast<char*>(DAYDREAM_BINARY)};
    for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    execv(DAYDREAM_BINARY, argv.data());
    _exit(99);
  }
  // Waits until the output has `text`; the output by then.
  std::string Await(const std::string& text) const {
    for (int i = 0; i < 300; ++i) {
      std::string out = ReadAll(Path("out"));
      if (out.find(text) != std::string::npos && out.ends_with('\n')) return out;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return "not seen: " + text + "\n" + ReadAll(Path("out")) + ReadAll(Path("err"));
  }
  // Ends it as Ctrl-C does, or with another signal; its exit code.
  static int Interrupt(pid_t pid, int signal = SIGINT) {
    int status = -1;
    if (kill(pid, signal) != 0 || waitpid(pid, &status, 0) != pid) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  std::string folder_;
};

}  // namespace daydream
