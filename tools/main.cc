// The program `daydream`: finds the command, parses its flags, runs it, turns errors into
// messages and exit codes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "graph/large_pages.h"
#include "tools/command.h"
#include "tools/config.h"
#include "tools/memory.h"
#include "tools/overwrite.h"
#include "tools/running/interrupt.h"
#include "tools/version.h"

#if defined(__GLIBC__)
#include <malloc.h>
#include <sys/resource.h>
#endif

namespace daydream {
namespace {

// Graphs, their copies and timelines come and go. By default each goes back to the system, and the
// next one waits for new pages of zeros: a fifth of the time of `whatif` on two million events. So
// freed memory is kept, for all threads together: what one has freed, the next one uses. The first
// part of the heap is of large pages, which are filled with zeros in a fifth of the time; it takes
// no memory before it is used.
void KeepFreedMemory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur != RLIM_INFINITY) return;
  constexpr size_t kInLargePages = size_t{256} << 20;
  void* heap = std::malloc(kInLargePages);
  if (heap != nullptr) UseLargePages(heap, kInLargePages);
  std::free(heap);
#endif
}

absl::Status UnknownCommand(const std::string& word) {
  std::vector<std::string_view> names;
  for (const Command* c : Commands()) names.push_back(c->name);
  std::string hint = DidYouMean(word, names);
  for (std::string_view name : names) {
    if (hint.empty() && word.starts_with(name)) hint = DidYouMean(name, names);  // "optimizations"
  }
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0106",
                     .what = fmt::format("unknown command '{}'{}", word, hint),
                     .fix = word == "man" ? kManualFix : "daydream help lists the commands"});
}

absl::Status CheckJobs(const Args& args) {
  const std::string_view text = args.Has("--jobs") ? args.Get("--jobs") : "1";
  const auto jobs = PlainNumber(text);
  if (jobs && *jobs >= 1 && *jobs == std::floor(*jobs)) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("--jobs '{}' is not a number above 0", text),
                     .fix = "-j 4"});
}

absl::Status CheckInputs(const Command& command, const Args& args) {
  size_t given = args.positional().size();
  if (given >= command.takes.least && given <= command.takes.most) {
    DD_RETURN_IF_ERROR(CheckJobs(args));
    return CheckOverwrites(command, args);
  }
  std::string what =
      given < command.takes.least
          ? fmt::format("daydream {} needs {}", command.name,
                        command.takes.least == 1 ? "an argument"
                                                 : fmt::format("{} arguments", command.takes.least))
          : fmt::format("daydream {} does not take '{}'", command.name,
                        args.positional()[command.takes.most]);
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0107",
                     .what = std::move(what),
                     .fix = fmt::format("daydream {} {}", command.name, command.usage)});
}

Exit Fail(Session& session, const absl::Status& status) {
  session.Error(status);
  return ExitOf(status);
}

// The exit code of a command that runs another one is to be told apart from the other's.
Exit Fail(Session& session, const Command& command, const absl::Status& status) {
  Exit exit = Fail(session, status);
  bool told_apart = exit >= Exit::kNotStarted;
  return command.takes.command && !told_apart ? Exit::kNotStarted : exit;
}

// A mistake in the command line or in what stands for it. A rank has no name in what it writes
// itself: it leaves the word to the first one, which says whose line it is.
Exit Refuse(Session& session, const Command& command, const absl::Status& status) {
  if (command.tells_mistake != nullptr && !command.tells_mistake(status)) return Exit::kOk;
  return Fail(session, command, status);
}

// --color and --message-format count even when the rest cannot be parsed.
void ConfigureFromWords(const std::vector<std::string>& words, Session& session) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < words.size(); ++i) {
    for (std::string_view name : {"--color", "--message-format"}) {
      if (words[i].starts_with(std::string(name) + "=")) kept.push_back(words[i]);
      if (words[i] == name && i + 1 < words.size()) {
        kept.push_back(words[i] + "=" + words[i + 1]);
      }
    }
  }
  std::vector<const Flag*> flags;
  for (const Flag& f : GlobalFlags()) flags.push_back(&f);
  auto args = ParseArgs(flags, kept);
  session.Configure(args.ok() ? *args : Args());
}

// To standard output; a full disk is an error here, too.
Exit Say(Session& session, const std::string& text) {
  const auto status = session.WriteResult(Args(), text);
  return status.ok() ? Exit::kOk : Fail(session, status);
}

// What the user's own file has for flags that were not given. What it may change in the answer is
// told beside the answer.
absl::Status ApplyConfig(const Command& command, Args& args, Session& session) {
  // What helps to mend the file works without it.
  constexpr std::string_view kHelpers[] = {"help", "explain", "completions"};
  if (args.Has("--no-config") ||
      std::find(std::begin(kHelpers), std::end(kHelpers), command.name) != std::end(kHelpers)) {
    return absl::OkStatus();
  }
  DD_ASSIGN_OR_RETURN(const Config config, Config::Read());
  if (!config.closed().empty()) {
    session.Note(fmt::format("{} is not looked for: permission denied", config.closed()));
  }
  config.ApplyTo(command, args);
  session.Configure(args);
  const std::vector<std::string> flags = AnswersFromConfig(command, args);
  if (flags.empty()) return absl::OkStatus();
  session.TellDefaults(config.path(), flags);
  return absl::OkStatus();
}

Exit Run(std::vector<std::string> words) {
  Session session;
  ConfigureFromWords(words, session);
  if (words.empty()) {
    std::fputs(GeneralHelp().c_str(), stdout);
    return Exit::kUsage;
  }
  if (words[0] == "--help" || words[0] == "-h") words[0] = "help";
  if (words[0] == "--version" || words[0] == "-V") {
    bool verbose = words.size() > 1 && (words[1] == "-v" || words[1] == "--verbose");
    return Say(session, verbose ? LongVersion() : ShortVersion());
  }
  const Command* command = FindCommand(words[0]);
  if (command == nullptr) return Fail(session, UnknownCommand(words[0]));
  words.erase(words.begin());
  FlagsEnd end = command->takes.command ? FlagsEnd::kAtFirstWord : FlagsEnd::kAtDashes;
  auto args = ParseArgs(FlagsOf(*command), words, end);
  if (!args.ok()) return Refuse(session, *command, args.status());
  session.Configure(*args);
  if (args->Has("--help")) return Say(session, HelpOf(*command));
  if (auto status = ApplyConfig(*command, *args, session); !status.ok()) {
    return Refuse(session, *command, status);
  }
  if (auto status = CheckInputs(*command, *args); !status.ok()) {
    return Refuse(session, *command, status);
  }
  const auto fail = [&](const absl::Status& status) {
    session.EndProgress();
    return Fail(session, *command, status);
  };
  auto exit = WithinMemory(session, fail, [&] { return command->run(*args, session); });
  if (!exit.ok()) return fail(exit.status());
  session.EndProgress();
  return *exit;
}

}  // namespace
}  // namespace daydream

int main(int argc, char** argv) {
  daydream::KeepFreedMemory();
  daydream::InstallInterruptHandler();
  return static_cast<int>(daydream::Run({argv + (argc > 0 ? 1 : 0), argv + argc}));
}
