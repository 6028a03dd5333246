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
                       .fix = name == "man" ? kManualFix : "daydream help lists the commands"});
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, HelpOf(*command)));
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

}  // namespace daydream
