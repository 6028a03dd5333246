#include "tools/command.h"

#include <array>

namespace daydream {
namespace {

constexpr std::string_view kColors[] = {"auto", "always", "never"};
constexpr std::string_view kProgress[] = {"auto", "always", "never"};
constexpr std::string_view kMessageFormats[] = {"text", "json"};
constexpr std::string_view kFormats[] = {"table", "json", "csv", "md"};
constexpr std::string_view kUnits[] = {"auto", "ns", "us", "ms", "s"};

constexpr Flag kGlobalFlags[] = {
    {.name = "--help", .letter = 'h', .help = "print this help"},
    {.name = "--quiet", .letter = 'q', .help = "only errors: no warnings, no notes"},
    {.name = "--verbose", .letter = 'v', .help = "more notes"},
    {.name = "--color",
     .value = "WHEN",
     .help = "colours: auto, always or never; NO_COLOR counts",
     .fallback = "auto",
     .choices = kColors},
    {.name = "--progress",
     .value = "WHEN",
     .help = "what is being done, with the time that is left: auto (on a terminal), always (a line "
             "a second) or never",
     .fallback = "auto",
     .choices = kProgress},
    {.name = "--no-config", .help = "without the defaults of ~/.config/daydream/config"},
    {.name = "--message-format",
     .value = "FORMAT",
     .help = "errors and warnings as text, or as one json object a line",
     .fallback = "text",
     .choices = kMessageFormats},
    {.name = "--jobs",
     .letter = 'j',
     .value = "N",
     .help = "threads; results do not depend on it (default: all cores, at most 8)"},
};

constexpr Flag kReadFlags[] = {
    {.name = "--from",
     .value = "FORMAT",
     .help = "format of the input, one of docs/formats.md; auto looks at the content",
     .fallback = "auto"},
    {.name = "--strict", .help = "refuse malformed events instead of counting them"},
    {.name = "--max-errors",
     .value = "SHARE",
     .help = "share of malformed events above which reading fails",
     .fallback = "1%"},
    {.name = "--rank",
     .value = "R",
     .help =
         "of several ranks the one to look at: auto (it waits least for the others) or a number",
     .fallback = "auto"},
    {.name = "--convert",
     .help = "run nsys on reports of Nsight Systems (.nsys-rep), into a temporary folder"},
    {.name = "--et",
     .value = "FILE",
     .help = "a PyTorch execution trace of the same program: which op reads what of which"},
    {.name = "--memory",
     .value = "FILE",
     .help = "a memory snapshot of PyTorch of the same run, for what was allocated when"},
    {.name = "--shapes",
     .value = "FILE",
     .help = "a PyTorch execution trace of the same program, for ops recorded without shapes"},
    {.name = "--steps",
     .value = "LIST",
     .help =
         "steps that count: auto (of a long recording some for all), all, or places from 0 like "
         "2-5,7",
     .fallback = "auto"},
};

constexpr Flag kResultFlags[] = {
    {.name = "--format",
     .value = "FORMAT",
     .help = "table, json, csv or md",
     .fallback = "table",
     .choices = kFormats},
    {.name = "--output",
     .letter = 'o',
     .value = "FILE",
     .help = "write the result there; .json, .csv and .md choose the format"},
    {.name = "--force-overwrite", .letter = 'f', .help = "replace files that exist"},
    {.name = "--wide", .help = "whole names and all columns, however wide the table gets"},
    {.name = "--unit",
     .value = "UNIT",
     .help = "of times in tables and headlines: auto, ns, us, ms or s; json keeps its own",
     .fallback = "auto",
     .choices = kUnits},
};

constexpr const Command* kCommands[] = {
#define COMMAND(symbol) &symbol,
#include "tools/commands/commands.def"
#undef COMMAND
};

// --steps is the last of them.
std::span<const Flag> ReadFlagsOf(const Command& command) {
  const std::span<const Flag> all = kReadFlags;
  return command.takes.steps ? all : all.first(all.size() - 1);
}

// --unit is the last of them.
std::span<const Flag> ResultFlagsOf(const Command& command) {
  const std::span<const Flag> all = kResultFlags;
  return command.takes.times ? all : all.first(all.size() - 1);
}

std::string FlagLine(const Flag& f) {
  std::string left =
      f.letter != 0 ? fmt::format("-{}, {}", f.letter, f.name) : fmt::format("    {}", f.name);
  if (!f.value.empty()) left += fmt::format(" {}", f.value);
  std::string right(f.help);
  if (f.repeats) right += "; may be repeated";
  if (!f.fallback.empty()) right += fmt::format(" (default: {})", f.fallback);
  if (left.size() > 30) return fmt::format("  {}\n{:34}{}\n", left, "", right);
  return fmt::format("  {:<30}  {}\n", left, right);
}

std::string FlagSection(std::string_view title, std::span<const Flag> flags) {
  if (flags.empty()) return "";
  std::string out = fmt::format("\n{}\n", title);
  for (const Flag& f : flags) out += FlagLine(f);
  return out;
}

std::string Indented(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    size_t end = std::min(lines.find('\n'), lines.size());
    out += fmt::format("  {}\n", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

std::string FlagTable(std::span<const Flag> flags) {
  std::string out = "| flag | default | meaning |\n| --- | --- | --- |\n";
  for (const Flag& f : flags) {
    std::string name = fmt::format("{}{}{}", f.letter != 0 ? fmt::format("-{}, ", f.letter) : "",
                                   f.name, f.value.empty() ? "" : fmt::format(" {}", f.value));
    out += fmt::format("| `{}` | {} | {}{} |\n", name,
                       f.fallback.empty() ? "" : fmt::format("`{}`", f.fallback), f.help,
                       f.repeats ? "; may be repeated" : "");
  }
  return out;
}

// The groups of flags that are not a command's own, in its section of the reference.
std::string AlsoTakes(const Takes& takes) {
  std::string groups, but;
  if (takes.traces) groups = "[reading](#reading-traces)";
  if (takes.result) groups += (groups.empty() ? "" : " and ") + std::string("[result](#results)");
  if (groups.empty()) return "";
  if (takes.traces && !takes.steps) but = " but --steps";
  if (takes.result && !takes.times) but += (but.empty() ? " but" : " and") + std::string(" --unit");
  return fmt::format("\nAlso takes the {} flags{}.\n", groups, but);
}

}  // namespace

std::span<const Command* const> Commands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  for (const Command* c : kCommands) {
    if (c->name == name) return c;
  }
  return nullptr;
}

std::span<const Flag> GlobalFlags() { return kGlobalFlags; }
std::span<const Flag> ReadFlags() { return kReadFlags; }
std::span<const Flag> ResultFlags() { return kResultFlags; }

std::vector<const Flag*> FlagsOf(const Command& command) {
  std::vector<const Flag*> flags;
  auto add = [&](std::span<const Flag> more) {
    for (const Flag& f : more) flags.push_back(&f);
  };
  add(command.flags);
  if (command.takes.traces) add(ReadFlagsOf(command));
  if (command.takes.result) add(ResultFlagsOf(command));
  add(kGlobalFlags);
  return flags;
}

std::string GeneralHelp() {
  std::string out =
      "daydream predicts what an optimization of a GPU training step would bring,\n"
      "from one recorded trace and without a GPU.\n\n"
      "  daydream info TRACE                      what is in the file\n"
      "  daydream whatif TRACE --opt amp,fuse     what these two would bring\n\n"
      "commands\n";
  for (const Command* c : kCommands) out += fmt::format("  {:<13} {}\n", c->name, c->summary);
  out +=
      R"(
daydream COMMAND --help lists the flags of a command, daydream opt list the optimizations.
daydream explain TOPIC explains an optimization, an error code or a word.
All of it on one page: man daydream, or daydream help --man | man -l -
)";
  return out;
}

std::string HelpOf(const Command& c) {
  std::string out = fmt::format("daydream {}: {}\n\nusage: daydream {}{}{}\n", c.name, c.summary,
                                c.name, c.usage.empty() ? "" : " ", c.usage);
  if (!c.examples.empty()) out += "\nexamples\n" + Indented(c.examples);
  if (!c.details.empty()) out += fmt::format("\n{}\n", c.details);
  out += FlagSection("flags", c.flags);
  if (c.takes.traces) out += FlagSection("reading", ReadFlagsOf(c));
  if (c.takes.result) out += FlagSection("result", ResultFlagsOf(c));
  return out + FlagSection("everywhere", kGlobalFlags);
}

std::string ReferenceMarkdown() {
  std::string out;
  for (const Command* c : kCommands) {
    out += fmt::format("## daydream {}\n\n{}.\n\n```\ndaydream {} {}\n```\n", c->name, c->summary,
                       c->name, c->usage);
    if (!c->examples.empty()) out += fmt::format("\nExamples:\n\n```\n{}\n```\n", c->examples);
    if (!c->details.empty()) out += fmt::format("\n{}\n", c->details);
    if (!c->flags.empty()) out += "\n" + FlagTable(c->flags);
    out += AlsoTakes(c->takes);
    out += "\n";
  }
  out +=
      "## Reading traces\n\nFlags of every command that reads a trace.\n\n" + FlagTable(kReadFlags);
  out +=
      "\n## Results\n\nFlags of every command that prints a result.\n\n" + FlagTable(kResultFlags);
  out += "\n## Everywhere\n\n" + FlagTable(kGlobalFlags);
  return out;
}

}  // namespace daydream
