#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/output/page_server.h"
#include "tools/output/report_page.h"
#include "tools/running/interrupt.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace daydream {
namespace {

constexpr auto kViewFlags = WithPageFlags(
    std::array{Flag{.name = "--no-open", .help = "print the address and open no browser"}});

bool HasScreen() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

// With the program that opens what the desktop knows. It is not waited for, and a machine without
// it has the address to go by.
void OpenBrowser(const std::string& url) {
  if (!HasScreen()) return;
  posix_spawn_file_actions_t files;
  if (posix_spawn_file_actions_init(&files) != 0) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  std::string program = "xdg-open", address = url;
  char* argv[] = {program.data(), address.data(), nullptr};
  pid_t pid = 0;
  posix_spawnp(&pid, program.c_str(), &files, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&files);
}

absl::StatusOr<Exit> RunView(const Args& args, Session& session) {
  EndWithInterrupt();
  DD_ASSIGN_OR_RETURN(ReportPage page,
                      MakeReportPage(kViewCommand, args, session, WhenInterrupted::kEnds));
  if (!page.exit.ok()) session.Error(page.exit.status());
  DD_ASSIGN_OR_RETURN(const PageServer server, PageServer::Listen(std::move(page.html)));
  DD_RETURN_IF_ERROR(session.WriteResult(Args(), server.Url() + "\n"));
  session.Note("this page is shown until Ctrl-C, on this machine only");
  if (!args.Has("--no-open")) OpenBrowser(server.Url());
  return server.Serve();
}

}  // namespace

const Command kViewCommand = {
    .name = "view",
    .summary = "the page of report, in your browser",
    .usage = "TRACE [--opt SPEC]...",
    .details =
        R"(Makes the page of daydream report and shows it at an address of this machine, which is
printed, until Ctrl-C ends it. Where there is a screen, the browser is opened as well. The
address is that of the loopback interface: nobody can reach it from another machine, and the
random word in it keeps other users of this one out. On a remote machine, copy the port:
ssh -L PORT:127.0.0.1:PORT, and open the printed address at home.)",
    .examples =
        "daydream view run.ddtrace\n"
        "daydream view run.ddtrace --opt amp,fuse\n"
        "daydream view run.ddtrace --no-open",
    .flags = kViewFlags,
    .takes = {.traces = true, .least = 1, .most = 1},
    .run = RunView,
};

}  // namespace daydream
