// Runs another program in the foreground, as env and nohup do, but stays to see how it ends.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace daydream {

struct CommandEnd {
  int exit = 0;    // its exit code, or 128 + n after signal n
  int signal = 0;  // the signal that ended it, or 0
};

// Runs `words` with `environment` ("NAME=VALUE", all of it) and waits. Standard input, output and
// error, the process group and the terminal are the caller's: Ctrl-C, Ctrl-\ and Ctrl-Z reach the
// program from the terminal itself and leave the caller alive to see its end. INT, QUIT, HUP, TERM,
// USR1 and USR2 that others send to the caller are passed on. E0504 when there is no such command,
// E0505 when it cannot be executed.
absl::StatusOr<CommandEnd> RunCommand(const std::vector<std::string>& words,
                                      const std::vector<std::string>& environment);

}  // namespace daydream
