// Runs the program as users do, in a folder of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace daydream {

inline constexpr char kExampleTrace[] =
    DAYDREAM_SOURCE_DIR "/examples/launch-bound-synthetic.ddtrace";

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct CliResult {
  int exit = -1;
  std::string out, err;
};

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
    int status =
        std::system((command + " >" + Path("out") + " 2>" + Path("err") + " </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadAll(Path("out")),
            ReadAll(Path("err"))};
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  std::string folder_;
};

}  // namespace daydream
