// Defaults for flags, from a file of the user's:
//
//   # ~/.config/daydream/config
//   color = never
//   jobs = 4
//
//   [whatif]
//   samples = 400
//   no-alone = yes
//
// Above the first section stand flags that several commands share (docs/cli.md#everywhere,
// #reading-traces, #results); in the section of a command its own. What the command line says wins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/command.h"
#include "tools/flags.h"

namespace daydream {

class Config {
 public:
  // Of $XDG_CONFIG_HOME/daydream/config, else of $HOME/.config/daydream/config; nothing when there
  // is no such file, or none that can be reached. E0112 for anything in it that means nothing: a
  // wrong name is no comment.
  static absl::StatusOr<Config> Read();
  // `path` is for messages.
  static absl::StatusOr<Config> Parse(std::string_view text, std::string path);

  // Gives `args` what it has no value for.
  void ApplyTo(const Command& command, Args& args) const;

  const std::string& path() const { return path_; }
  // Where the file would be, if a folder on the way cannot be looked into; else empty.
  const std::string& closed() const { return closed_; }

 private:
  struct Line {
    std::string command;  // empty: every command that has the flag
    std::string flag, value;
  };
  std::string path_, closed_;
  std::vector<Line> lines_;
};

// Flags that `args` has from a file and that can change what is answered, not only how it looks.
std::vector<std::string> AnswersFromConfig(const Command& command, const Args& args);

}  // namespace daydream
