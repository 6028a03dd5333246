// Runs a command where standard output is a terminal.
#pragma once

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

namespace daydream {

// What `command` prints on a terminal of 80 columns, with `messages` also on standard error.
inline std::string OnTerminal(const std::string& command, bool messages = false) {
  int terminal = -1, program = -1;
  winsize size{.ws_row = 50, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(openpty(&terminal, &program, nullptr, nullptr, &size), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(program, STDOUT_FILENO);
    if (messages) dup2(program, STDERR_FILENO);
    close(terminal);
    close(program);
    execl("/bin/sh", "sh", "-c", (messages ? command : command + " 2>/dev/null").c_str(), nullptr);
    _exit(127);
  }
  close(program);
  std::string out;
  char buffer[4096];
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) {
    out.append(buffer, static_cast<size_t>(n));
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << command;
  return out;
}

}  // namespace daydream
