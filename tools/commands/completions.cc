// daydream completions: what shells offer after Tab, from the tables that help and docs are made
// of.
#include <string>
#include <string_view>
#include <vector>

#include "examples/lessons/lesson.h"
#include "tools/command.h"
#include "tools/pages/topics.h"
#include "transforms/optimizations/optimizations.h"

namespace daydream {
namespace {

using Words = std::vector<std::string_view>;

Words NamesOfOptimizations() {
  Words words;
  for (const Transform* t : Transforms()) words.push_back(t->name);
  return words;
}

// Values that are known beforehand; of most flags none.
Words ValuesOf(const Flag& flag) {
  if (!flag.choices.empty()) return {flag.choices.begin(), flag.choices.end()};
  if (flag.name == "--opt" || flag.name == "--exclude") return NamesOfOptimizations();
  return {};
}

// Arguments that are no files; of most commands none.
Words ArgumentsOf(const Command& command) {
  Words words;
  if (command.name == "tour") {
    for (const examples::Lesson* lesson : examples::Lessons()) words.push_back(lesson->id);
  } else if (command.name == "help") {
    for (const Command* c : Commands()) words.push_back(c->name);
  } else if (command.name == "completions") {
    words = {"bash", "zsh", "fish"};
  } else if (command.name == "opt") {
    words = NamesOfOptimizations();
    words.insert(words.begin(), {"list", "show", "check"});
  } else if (command.name == "explain") {
    words = NamesOfOptimizations();
    for (const ErrorPage& page : ErrorPages()) words.push_back(page.code);
    for (const std::span<const Term> terms : {Terms(), FindingTerms()}) {
      for (const Term& term : terms) {
        if (term.name.find(' ') == term.name.npos) words.push_back(term.name);
      }
    }
  }
  return words;
}

std::string Joined(const Words& words) {
  std::string out;
  for (std::string_view word : words) out += (out.empty() ? "" : " ") + std::string(word);
  return out;
}

Words NamesOfCommands() {
  Words words;
  for (const Command* c : Commands()) words.push_back(c->name);
  return words;
}

Words NamesOfFlags(const Command& command) {
  Words words;
  for (const Flag* f : FlagsOf(command)) words.push_back(f->name);
  return words;
}

// bash splits "--unit=ms" into three words. Of a list such as "amp,fu" the last part is offered.
constexpr std::string_view kBashEnd = R"(  esac
  if [[ $COMP_CWORD -eq 1 ]]; then
    words="$commands" values=
  fi
  if [[ $COMP_CWORD -eq 1 || $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ -n $values ]]; then
    COMPREPLY=($(compgen -P "${word%"${word##*,}"}" -W "$values" -- "${word##*,}"))
  elif [[ $before != -* && -n $arguments ]]; then
    COMPREPLY=($(compgen -W "$arguments" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _daydream daydream
)";

std::string BashCompletions() {
  std::string out =
      "# bash completions for daydream: source <(daydream completions bash)\n"
      "_daydream() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local words= arguments= values=\n";
  out += "  local commands='" + Joined(NamesOfCommands()) + " --help --version'\n";
  out +=
      "  if [[ $word == = ]]; then\n"
      "    word=\n"
      "  elif [[ $before == = ]]; then\n"
      "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const Command* c : Commands()) {
    out += fmt::format("    {}) words='{}' arguments='{}' ;;\n", c->name, Joined(NamesOfFlags(*c)),
                       Joined(ArgumentsOf(*c)));
  }
  out += "  esac\n  case \"${COMP_WORDS[1]} $before\" in\n";
  for (const Command* c : Commands()) {
    for (const Flag* f : FlagsOf(*c)) {
      const Words values = ValuesOf(*f);
      if (values.empty()) continue;
      out += fmt::format("    '{} {}'", c->name, f->name);
      if (f->letter != 0) out += fmt::format(" | '{} -{}'", c->name, f->letter);
      out += fmt::format(") values='{}' ;;\n", Joined(values));
    }
  }
  return out + std::string(kBashEnd);
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

std::string ZshAction(const Words& words) {
  return words.empty() ? "_files" : "(" + Joined(words) + ")";
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
      if (!f->value.empty()) text += fmt::format(":{}:{}", f->value, ZshAction(ValuesOf(*f)));
      out += " \\\n      " + Quoted(text);
    }
    out += fmt::format(" \\\n      {} ;;\n", Quoted("*:file:" + ZshAction(ArgumentsOf(*c))));
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
    const std::string within =
        fmt::format("complete -c daydream -n '__fish_seen_subcommand_from {}'", c->name);
    for (const Flag* f : FlagsOf(*c)) {
      const Words values = ValuesOf(*f);
      out += fmt::format(
          "{} -l {}{}{}{} -d {}\n", within, f->name.substr(2),
          f->letter != 0 ? fmt::format(" -s {}", f->letter) : "", f->value.empty() ? "" : " -r",
          values.empty() ? "" : fmt::format(" -f -a {}", Quoted(Joined(values))), Quoted(f->help));
    }
    const Words arguments = ArgumentsOf(*c);
    if (!arguments.empty()) out += fmt::format("{} -f -a {}\n", within, Quoted(Joined(arguments)));
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
