#include "tools/record/run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace daydream {
namespace {

constexpr std::array kPassedOn = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

sigset_t Wanted() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int signal : kPassedOn) sigaddset(&wanted, signal);
  sigaddset(&wanted, SIGCHLD);
  return wanted;
}

// Blocks the signals that Wait() takes, and makes sure that the end of a child is seen. What it
// changed is put back in the child before the program starts, and here at the end.
class SignalSettings {
 public:
  SignalSettings() {
    sigset_t wanted = Wanted();
    sigprocmask(SIG_BLOCK, &wanted, &mask_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &on_child_);  // while ignored, ended children vanish
  }
  ~SignalSettings() {
    // A Ctrl-C that ended the child is still waiting here, too; it was not meant for the caller.
    sigset_t left = Wanted();
    timespec now{};
    while (sigtimedwait(&left, nullptr, &now) > 0) continue;
    Restore();
  }
  SignalSettings(const SignalSettings&) = delete;
  SignalSettings& operator=(const SignalSettings&) = delete;

  void Restore() const {
    sigaction(SIGCHLD, &on_child_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_;
  struct sigaction on_child_ {};
};

absl::Status CannotStart(const std::string& name, int error) {
  if (error == ENOENT) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      {.code = "E0504",
                       .what = fmt::format("there is no command '{}'", name),
                       .fix = "daydream trace [FLAG...] -- COMMAND [ARGUMENT...]"});
  }
  return MakeStatus(absl::StatusCode::kPermissionDenied,
                    {.code = "E0505",
                     .what = fmt::format("'{}' cannot be executed", name),
                     .why = std::strerror(error)});
}

// Collects signals until `child` has ended. REQUIRES: SignalSettings are in force.
CommandEnd Wait(pid_t child) {
  sigset_t wanted = Wanted();
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
      return {WEXITSTATUS(status), 0};
    }
    siginfo_t info{};
    int signal = sigwaitinfo(&wanted, &info);
    if (signal <= 0 || signal == SIGCHLD) continue;
    // What the terminal sends (SI_KERNEL) goes to the whole process group: the child has it.
    if (info.si_code != SI_KERNEL) kill(child, signal);
  }
}

}  // namespace

absl::StatusOr<CommandEnd> RunCommand(const std::vector<std::string>& words,
                                      const std::vector<std::string>& environment) {
  std::vector<char*> argv = Pointers(words), envp = Pointers(environment);
  // Carries errno when the program cannot be executed; closed by a successful exec.
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return CannotStart(words[0], errno);
  SignalSettings settings;
  pid_t child = fork();
  if (child == 0) {
    settings.Restore();
    environ = envp.data();  // before the search: PATH may be among it
    execvp(argv[0], argv.data());
    int error = errno;
    (void)!write(pipe[1], &error, sizeof error);
    _exit(127);
  }
  int failed_fork = child < 0 ? errno : 0;
  close(pipe[1]);
  int error = 0;
  ssize_t got = failed_fork != 0 ? 0 : read(pipe[0], &error, sizeof error);
  close(pipe[0]);
  if (failed_fork != 0) return CannotStart(words[0], failed_fork);
  CommandEnd end = Wait(child);
  if (got == sizeof error) return CannotStart(words[0], error);
  return end;
}

}  // namespace daydream
