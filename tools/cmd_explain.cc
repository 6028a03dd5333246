#include "tools/command.h"
#include "tools/describe.h"
#include "tools/topics.h"
#include "transforms/transform.h"

namespace daydream {
namespace {

constexpr std::string_view kDocs[] = {"errors", "glossary"};
constexpr Flag kFlags[] = {
    {.name = "--markdown",
     .value = "PAGE",
     .help = "a whole page: errors or glossary",
     .choices = kDocs},
};

std::string Topics() {
  std::string out = "optimizations\n ";
  for (const Transform* t : Transforms()) out += fmt::format(" {}", t->name);
  out += "\n\nwords\n";
  for (const Term& t : Terms()) out += fmt::format("  {}\n", t.name);
  out += "\nerrors and warnings\n";
  for (const ErrorPage& page : ErrorPages()) {
    out += fmt::format("  {}  {}\n", page.code, page.title);
  }
  return out;
}

absl::StatusOr<std::string> Explain(const std::string& topic) {
  if (const Transform* t = FindTransform(topic)) return DescribeTransform(*t);
  if (const ErrorPage* page = FindErrorPage(topic)) {
    return fmt::format("{}: {}\n\n{}\n", page->code, page->title, page->text);
  }
  if (const Term* term = FindTerm(topic)) return fmt::format("{}\n\n{}\n", term->name, term->text);
  std::vector<std::string_view> names;
  for (const Transform* t : Transforms()) names.push_back(t->name);
  for (const Term& t : Terms()) names.push_back(t.name);
  for (const ErrorPage& page : ErrorPages()) names.push_back(page.code);
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0109",
       .what = fmt::format("nothing is known about '{}'{}", topic, DidYouMean(topic, names)),
       .fix = "daydream explain lists what there is"});
}

absl::StatusOr<Exit> Run(const Args& args, Session& session) {
  std::string text;
  if (args.Has("--markdown")) {
    text = args.Get("--markdown") == "errors" ? ErrorsMarkdown() : GlossaryMarkdown();
  } else if (args.positional().empty()) {
    text = Topics();
  } else {
    std::string topic;
    for (const std::string& word : args.positional()) topic += (topic.empty() ? "" : " ") + word;
    DD_ASSIGN_OR_RETURN(text, Explain(topic));
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  return Exit::kOk;
}

}  // namespace

extern const Command kExplainCommand;
const Command kExplainCommand = {
    .name = "explain",
    .summary = "explain an optimization, an error code, or a word of the output",
    .usage = "[TOPIC]",
    .details = "",
    .examples = "daydream explain amp\ndaydream explain E0301\ndaydream explain critical path",
    .flags = kFlags,
    .max_inputs = 4,
    .run = Run,
};

}  // namespace daydream
