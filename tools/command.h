// A command of the program: data for parsing, help and docs, and one function. Each lives in its
// own tools/commands/<name>.cc and has one line in commands.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tools/diagnostics.h"
#include "tools/flags.h"
#include "tools/session.h"

namespace daydream {

inline constexpr size_t kAny = static_cast<size_t>(-1);

// What stands behind a command's name.
struct Takes {
  bool traces = false;         // the flags of ReadFlags()
  bool steps = true;           // ... --steps, too: false where only events count, which know none
  bool result = false;         // the flags of ResultFlags()
  bool times = true;           // ... --unit, too
  bool command = false;        // flags end at the first word, and what fails exits with 125
  size_t least = 0, most = 0;  // arguments that are no flags
};
inline constexpr Takes kOneTrace = {.traces = true, .result = true, .least = 1, .most = 1};

struct Command {
  std::string_view name;      // "whatif"
  std::string_view summary;   // one line, no full stop
  std::string_view usage;     // what follows the name: "TRACE --opt SPEC... [FLAG...]"
  std::string_view details;   // paragraphs for --help
  std::string_view examples;  // one command a line
  std::span<const Flag> flags = {};
  Takes takes = {};
  absl::StatusOr<Exit> (*run)(const Args& args, Session& session) = nullptr;
  // Of commands that run as many ranks: hears of a mistake in the command line before it is told;
  // false where another rank tells it.
  bool (*tells_mistake)(const absl::Status& mistake) = nullptr;
};

// All commands in the order of commands.def.
std::span<const Command* const> Commands();
const Command* FindCommand(std::string_view name);

// Flags of every command, of commands that read traces, and of commands with a result.
std::span<const Flag> GlobalFlags();
std::span<const Flag> ReadFlags();
std::span<const Flag> ResultFlags();
// Every flag `command` accepts, its own first.
std::vector<const Flag*> FlagsOf(const Command& command);

// The text of `daydream help` and of `daydream COMMAND --help`.
std::string GeneralHelp();
// For those who ask for a command "man".
inline constexpr char kManualFix[] = "man daydream, or daydream help --man | man -l -";
std::string HelpOf(const Command& command);
// The reference in docs/cli.md.
std::string ReferenceMarkdown();

#define COMMAND(symbol) extern const Command symbol;
#include "tools/commands/commands.def"
#undef COMMAND

}  // namespace daydream
