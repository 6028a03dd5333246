#include "tools/pages/man_page.h"

#include <span>
#include <string_view>

#include <fmt/format.h>

#include "tools/command.h"
#include "tools/version.h"

namespace daydream {
namespace {

// Text as roff prints it: '\' and '-' mean something, and so do '.' and ''' at the start of a line.
std::string Roff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_start = c == '\n';
  }
  return out;
}

void AppendFlags(std::span<const Flag> flags, std::string& out) {
  for (const Flag& f : flags) {
    out += ".TP\n";
    if (f.letter != 0) out += fmt::format("\\fB\\-{}\\fR, ", f.letter);
    out += fmt::format("\\fB{}\\fR", Roff(f.name));
    if (!f.value.empty()) out += fmt::format(" \\fI{}\\fR", Roff(f.value));
    out += fmt::format("\n{}\n", Roff(f.help));
  }
}

// Of docs/cli.md, which has them with more words.
struct ManItem {
  std::string_view name, text;
};
constexpr ManItem kManExits[] = {
    {"0", "done; warnings allowed"},
    {"1", "working failed: the result cannot be written, or an internal error"},
    {"2", "usage: unknown flag or command, bad option expression"},
    {"3", "the input cannot be read or is of no known format"},
    {"4", "the input lacks what the question needs, or the replay check failed"},
    {"5", "a condition of --fail-if held"},
    {"6", "doctor: recording cannot work here"},
    {"7", "the machine has not enough memory, or no more threads"},
    {"125, 126, 127", "trace: the command was not started, cannot be executed, does not exist"},
    {"130, 143", "interrupted"},
};
constexpr ManItem kManFiles[] = {
    {"~/.config/daydream/config",
     "values for flags that are not given; below $XDG_CONFIG_HOME where that is set"},
    {"*.ddtrace", "recordings of daydream trace, and traces that daydream import wrote"},
};
constexpr ManItem kManVariables[] = {
    {"NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR, TERM", "whether there are colours; --color says more"},
    {"COLUMNS", "width of tables, in a pipe, too"},
    {"DAYDREAM_OPTS_PATH", "folders with optimizations of your own, separated by ':'"},
    {"XDG_CONFIG_HOME", "where the folder of the defaults is"},
};

void AppendItems(std::string_view title, std::span<const ManItem> items, std::string& out) {
  out += fmt::format(".SH {}\n", title);
  for (const ManItem& i : items) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(i.name), Roff(i.text));
  }
}

}  // namespace

std::string ManPage() {
  std::string version = ShortVersion();
  while (!version.empty() && version.back() == '\n') version.pop_back();
  std::string out = fmt::format(
      ".TH DAYDREAM 1 \"\" \"{}\"\n.SH NAME\n"
      "daydream \\- predicts what an optimization of a GPU training step would bring\n"
      ".SH SYNOPSIS\n",
      Roff(version));
  for (const Command* c : Commands()) {
    out += fmt::format(".B daydream {}\n{}\n.br\n", Roff(c->name), Roff(c->usage));
  }
  for (const Command* c : Commands()) {
    out += fmt::format(".SH {}\n{}.\n", Roff(c->name), Roff(c->summary));
    if (!c->details.empty()) out += fmt::format(".PP\n{}\n", Roff(c->details));
    if (!c->examples.empty()) out += fmt::format(".PP\n.nf\n{}\n.fi\n", Roff(c->examples));
    AppendFlags(c->flags, out);
  }
  out += ".SH FLAGS OF COMMANDS THAT READ TRACES\n";
  AppendFlags(ReadFlags(), out);
  out += ".SH FLAGS OF COMMANDS WITH A RESULT\n";
  AppendFlags(ResultFlags(), out);
  out += ".SH FLAGS OF ALL COMMANDS\n";
  AppendFlags(GlobalFlags(), out);
  AppendItems("EXIT STATUS", kManExits, out);
  AppendItems("FILES", kManFiles, out);
  AppendItems("ENVIRONMENT", kManVariables, out);
  return out +
         ".SH SEE ALSO\n\\fBdaydream explain\\fR (words and error codes), \\fBdaydream tour\\fR "
         "(lessons), \\fBnsys\\fR(1)\n";
}

}  // namespace daydream
