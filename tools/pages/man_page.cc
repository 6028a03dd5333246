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
  return out;
}

}  // namespace daydream
