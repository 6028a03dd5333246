#include "tools/input/convert.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/shell_word.h"
#include "trace/bytes/source.h"
#include "trace/foreign/formats.h"

extern char** environ;

namespace daydream {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAnySize = int64_t{1} << 62;  // the beginning alone is read

absl::Status CannotExport(const std::string& report, std::string what, std::string why,
                          std::string fix) {
  return MakeStatus(absl::StatusCode::kUnavailable, {.code = "E0231",
                                                     .what = std::move(what),
                                                     .where = report,
                                                     .why = std::move(why),
                                                     .fix = std::move(fix)});
}

// What waitpid() tells of a child that writes into a temporary folder.
int Await(pid_t child) {
  TemporaryFolder::SetWriter(child);
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  TemporaryFolder::SetWriter(0);  // from here on its number may be that of another
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return state;
}

}  // namespace

bool IsReport(const std::string& path) {
  if (path == "-") return false;
  auto source = OpenFile(path, kAnySize);
  if (!source.ok()) return false;
  auto head = (*source)->Peek();
  return head.ok() && IsNsysReport(*head);
}

absl::StatusOr<std::string> ExportReport(const std::string& report, const TemporaryFolder& folder,
                                         Session& session) {
  DD_ASSIGN_OR_RETURN(const auto source, OpenFile(report, kAnySize));
  if (source->Path().empty()) {
    return CannotExport(report, "this report is packed, and nsys reads none that is",
                        "--convert hands it over as it is",
                        fmt::format("unpack it, as with gzip -dk {}", ShellWord(report)));
  }
  const std::string output = (folder.path() / fs::path(report).stem()).concat(".sqlite").string();
  std::vector<std::string> words = {"nsys",     "export", "--type", "sqlite",
                                    "--output", output,   report};
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellWord(word);
  session.Note(fmt::format("running: {}", line));
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // What it prints is progress: standard output is for results.
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, "nsys", &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return CannotExport(report, "--convert needs nsys, which cannot be run", std::strerror(error),
                        "add the folder of nsys to the PATH, or export on the machine that has it");
  }
  const int state = Await(child);
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0 && fs::exists(output)) return output;
  const bool nothing = WIFEXITED(state) && WEXITSTATUS(state) == 0;
  return CannotExport(report, "nsys could not export this report",
                      nothing            ? "it ended without an error and wrote no file"
                      : WIFEXITED(state) ? fmt::format("it ended with {}", WEXITSTATUS(state))
                                         : "it was ended by a signal",
                      "export with the version of nsys that wrote the report, or a newer one");
}

}  // namespace daydream
