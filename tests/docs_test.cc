// The console blocks of the documentation show what the program really prints:
//
//   ```console
//   $ daydream info examples/resnet50-synthetic.ddtrace
//   ...its output, standard error included
//   ```
//
// Each "$ daydream ..." line is run from the root of the repository and its output compared.
// DD_UPDATE_DOCS=1 writes the output into the page instead. Blocks that are not meant to be run
// use another tag (sh, text).
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/source_tree.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// What `command` prints, with the built program as `daydream`.
std::string Output(const std::string& command) {
  std::string line = fmt::format(
      "cd '{}' && PATH='{}':$PATH && export XDG_CONFIG_HOME=/nonexistent && "
      "( {} ) 2>&1 </dev/null",
      DAYDREAM_SOURCE_DIR, fs::path(DAYDREAM_BINARY).parent_path().string(), command);
  std::string output;
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return "cannot run " + command;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), n);
  }
  pclose(pipe);
  return output;
}

// scripts/demo ends in the command that it runs once everything is built.
std::string DemoCommand() {
  const std::string prefix = "exec build/release/";
  for (const std::string& line : SplitLines(ReadText(DAYDREAM_SOURCE_DIR "/scripts/demo"))) {
    if (line.starts_with(prefix)) {
      std::string command = line.substr(prefix.size());
      return command.substr(0, command.find(" \"$@\""));
    }
  }
  return "false";
}

constexpr std::string_view kDemo = "scripts/demo";

bool IsRunnable(const std::string& command) {
  return command.starts_with(kDemo) || command.starts_with("daydream ");
}

// The script hands on what stands behind its name.
std::string Run(const std::string& command) {
  return Output(command.starts_with(kDemo) ? DemoCommand() + command.substr(kDemo.size())
                                           : command);
}

// The page with the output of every command as it is now. `problems` gets a line for each command
// that is not one of ours.
std::string Rendered(const SourceFile& page, std::vector<std::string>& problems) {
  std::string text;
  bool in_console = false, skipping = false;
  for (const std::string& line : page.lines) {
    if (!in_console) {
      in_console = line == "```console";
      text += line + "\n";
    } else if (line == "```") {
      in_console = skipping = false;
      text += line + "\n";
    } else if (line.starts_with("$ ")) {
      std::string command = line.substr(2);
      text += line + "\n";
      skipping = IsRunnable(command);
      if (skipping) {
        text += Run(command);
      } else {
        problems.push_back(page.path + ": cannot check: " + line);
      }
    } else if (!skipping) {
      text += line + "\n";
    }
  }
  return text;
}

TEST(Docs, ConsoleBlocksShowTheRealOutput) {
  if (!fs::exists(DAYDREAM_BINARY)) GTEST_SKIP() << "the program is not built";
  std::vector<std::string> problems;
  for (const SourceFile& page : SourceFiles({".md"})) {
    std::string now = Rendered(page, problems);
    const fs::path path = fs::path(DAYDREAM_SOURCE_DIR) / page.path;
    if (std::getenv("DD_UPDATE_DOCS") != nullptr) {
      if (now != ReadText(path)) std::ofstream(path, std::ios::binary) << now;
      continue;
    }
    std::vector<std::string> got = SplitLines(now);
    for (size_t i = 0; i < std::max(got.size(), page.lines.size()); ++i) {
      std::string expected = i < page.lines.size() ? page.lines[i] : "(end)";
      std::string line = i < got.size() ? got[i] : "(end)";
      EXPECT_EQ(line, expected) << page.path << ":" << i + 1 << " (DD_UPDATE_DOCS=1 renews it)";
      if (line != expected) break;
    }
  }
  EXPECT_EQ(problems, std::vector<std::string>{});
}

}  // namespace
}  // namespace daydream
