#include <cstdio>

#include "tools/command.h"
#include "tools/pages/man_page.h"

namespace daydream {
namespace {

constexpr Flag kHelpFlags[] = {
    {.name = "--markdown", .help = "the reference of all commands, as in docs/cli.md"},
    {.name = "--man", .help = "the same as a manual page: daydream help --man | man -l -"},
};

absl::StatusOr<Exit> RunHelp(const Args& args, Session& session) {
  if (args.Has("--markdown")) {
    DD_RETURN_IF_ERROR(session.WriteResult(args, ReferenceMarkdown()));
    return Exit::kOk;
  }
  if (args.Has("--man")) {
    DD_RETURN_IF_ERROR(session.WriteResult(args, ManPage()));
    return Exit::kOk;
  }
  if (args.positional().empty()) {
    DD_RETURN_IF_ERROR(session.WriteResult(args, GeneralHelp()));
    return Exit::kOk;
  }
  const std::string& name = args.positional()[0];
  const Command* command = FindCommand(name);
  if (command == nullptr) {
    std::vector<std::string_view> names;
    for (const Command* c : Commands()) names.push_back(c->name);
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0106",
                       .what = fmt::format("unknown command '{}'{}", name, DidYouMean(name, names)),
                       .fix = "daydream help"});
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, HelpOf(*command)));
  return Exit::kOk;
}

std::string BashCompletions() {
  std::string out =
      "# bash completions for daydream: source <(daydream completions bash)\n"
      "_daydream() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} words\n"
      "  case ${COMP_WORDS[1]} in\n";
  std::string names;
  for (const Command* c : Commands()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", c->name);
    std::string flags;
    for (const Flag* f : FlagsOf(*c)) {
      flags += fmt::format("{}{}", flags.empty() ? "" : " ", f->name);
    }
    out += fmt::format("    {}) words='{}' ;;\n", c->name, flags);
  }
  out += fmt::format("    *) words='{} --help --version' ;;\n", names);
  out +=
      "  esac\n"
      "  [[ $COMP_CWORD -eq 1 ]] && words='" +
      names +
      " --help --version'\n"
      "  if [[ $word == -* || $COMP_CWORD -eq 1 ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _daydream daydream\n";
  return out;
}

// A text in single quotes for zsh and fish.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// zsh takes ':' and '[' of a description as syntax.
std::string ZshText(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == ':' || c == '[' || c == ']') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshCompletions() {
  std::string out =
      "#compdef daydream\n"
      "_daydream() {\n"
      "  if (( CURRENT == 2 )); then\n"
      "    local -a commands=(\n";
  for (const Command* c : Commands()) {
    out += fmt::format("      {}\n", Quoted(fmt::format("{}:{}", c->name, ZshText(c->summary))));
  }
  out +=
      "    )\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n";
  for (const Command* c : Commands()) {
    out += fmt::format("    {}) _arguments", c->name);
    for (const Flag* f : FlagsOf(*c)) {
      std::string text = fmt::format("{}{}[{}]", f->repeats ? "*" : "", f->name, ZshText(f->help));
      if (!f->value.empty()) text += fmt::format(":{}:_files", f->value);
      out += " \\\n      " + Quoted(text);
    }
    out += " \\\n      '*:file:_files' ;;\n";
  }
  return out + "  esac\n}\n_daydream \"$@\"\n";
}

std::string FishCompletions() {
  std::string out = "# fish completions for daydream\n";
  for (const Command* c : Commands()) {
    out += fmt::format("complete -c daydream -n __fish_use_subcommand -f -a {} -d {}\n", c->name,
                       Quoted(c->summary));
  }
  for (const Command* c : Commands()) {
    for (const Flag* f : FlagsOf(*c)) {
      out += fmt::format(
          "complete -c daydream -n '__fish_seen_subcommand_from {}' -l {}{}{} -d {}\n", c->name,
          f->name.substr(2), f->letter != 0 ? fmt::format(" -s {}", f->letter) : "",
          f->value.empty() ? "" : " -r", Quoted(f->help));
    }
  }
  return out;
}

absl::StatusOr<Exit> RunCompletions(const Args& args, Session& session) {
  constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
  const std::string& shell = args.positional()[0];
  std::string text = shell == "bash"   ? BashCompletions()
                     : shell == "zsh"  ? ZshCompletions()
                     : shell == "fish" ? FishCompletions()
                                       : "";
  if (text.empty()) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0104",
         .what = fmt::format("unknown shell '{}'{}", shell, DidYouMean(shell, kShells)),
         .fix = fmt::format("daydream completions {}", OrList(kShells))});
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  return Exit::kOk;
}

}  // namespace

const Command kHelpCommand = {
    .name = "help",
    .summary = "this list, or the flags of a command",
    .usage = "[COMMAND]",
    .details = "",
    .examples = "daydream help whatif",
    .flags = kHelpFlags,
    .takes = {.most = 1},
    .run = RunHelp,
};

const Command kCompletionsCommand = {
    .name = "completions",
    .summary = "completions for bash, zsh or fish",
    .usage = "bash|zsh|fish",
    .details = "",
    .examples =
        "source <(daydream completions bash)\n"
        "daydream completions fish > ~/.config/fish/completions/daydream.fish",
    .takes = {.least = 1, .most = 1},
    .run = RunCompletions,
};

}  // namespace daydream
