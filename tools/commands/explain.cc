#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "report/text/format.h"
#include "tools/command.h"
#include "tools/input/scenarios.h"
#include "tools/output/describe.h"
#include "tools/output/explain_scenario.h"
#include "tools/pages/topics.h"
#include "transforms/core/source_text.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

constexpr std::string_view kDocs[] = {"errors", "glossary"};
constexpr Flag kExplainFlags[] = {
    {.name = "--markdown",
     .value = "PAGE",
     .help = "a whole page: errors or glossary",
     .choices = kDocs},
    {.name = "--top",
     .value = "N",
     .help = "with a trace: kernels whose new times are explained",
     .fallback = "10"},
};

std::string Topics(Session& session) {
  std::string out = "optimizations\n ";
  for (const Transform* t : Transforms()) out += fmt::format(" {}", t->name);
  OptionFiles files(OptionFolders());
  LoadFolders(files, session);
  for (const auto& file : files.all()) out += fmt::format(" {}", file->transform().name);
  out += "\n\nwords\n";
  for (const Term& t : Terms()) out += fmt::format("  {}\n", t.name);
  out += "\nfindings about a recording\n";
  for (const Term& t : FindingTerms()) out += fmt::format("  {}\n", t.name);
  out += "\nerrors and warnings\n";
  for (const ErrorPage& page : ErrorPages()) {
    out += fmt::format("  {}  {}\n", page.code, page.title);
  }
  return out;
}

// "mine.yaml" describes the optimization of a file, "mine.yaml:12" shows the step of that line.
absl::StatusOr<std::string> ExplainFile(const std::string& topic) {
  std::string path = topic;
  size_t line = 0;
  size_t colon = topic.rfind(':');
  if (colon != std::string::npos && colon + 1 < topic.size() &&
      topic.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
    path = topic.substr(0, colon);
    line = static_cast<size_t>(std::atoll(topic.c_str() + colon + 1));
  }
  DD_ASSIGN_OR_RETURN(auto file, OptionFile::Load(path));
  if (line == 0) return DescribeTransform(file->transform());
  if (line > file->source().lines()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0109",
                       .what = fmt::format("{} has no line {}", path, line),
                       .why = fmt::format("it has {}", Plural(file->source().lines(), "line")),
                       .fix = fmt::format("daydream explain {}", path)});
  }
  std::string out = fmt::format("{}: {}\n\n", file->transform().name, file->transform().summary);
  for (const auto& [number, text] : file->StepAround(line)) {
    out += fmt::format("{:>5} |  {}\n", number, text);
  }
  return out;
}

absl::StatusOr<std::string> Explain(const std::string& topic) {
  if (const Transform* t = FindTransform(topic)) return DescribeTransform(*t);
  if (const ErrorPage* page = FindErrorPage(topic)) {
    return fmt::format("{}: {}\n\n{}\n", page->code, page->title, page->text);
  }
  if (const Term* term = FindTerm(topic)) return fmt::format("{}\n\n{}\n", term->name, term->text);
  size_t colon = std::min(topic.rfind(':'), topic.size());
  if (LooksLikeOptionFile(topic) || LooksLikeOptionFile(topic.substr(0, colon))) {
    return ExplainFile(topic);
  }
  OptionFiles files(OptionFolders());
  DD_ASSIGN_OR_RETURN(const auto file, files.Find(topic));
  if (file != nullptr) return DescribeTransform(file->transform());
  std::vector<std::string_view> names;
  for (const Transform* t : Transforms()) names.push_back(t->name);
  for (const auto terms : {Terms(), FindingTerms()}) {
    for (const Term& t : terms) names.push_back(t.name);
  }
  for (const ErrorPage& page : ErrorPages()) names.push_back(page.code);
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0109",
       .what = fmt::format("nothing is known about '{}'{}", topic, DidYouMean(topic, names)),
       .fix = "daydream explain lists what there is"});
}

absl::StatusOr<Exit> RunExplain(const Args& args, Session& session) {
  std::string text;
  if (args.Has("--markdown")) {
    text = args.Get("--markdown") == "errors" ? ErrorsMarkdown() : GlossaryMarkdown();
  } else if (args.positional().empty()) {
    text = Topics(session);
  } else {
    std::vector<std::string> words(args.positional().begin(), args.positional().end());
    std::error_code none;
    if (words.size() == 2 &&
        (std::filesystem::exists(words[1], none) || ParseScenario(words[0]).ok())) {
      DD_ASSIGN_OR_RETURN(text, ExplainScenario(words[0], words[1], args, session));
      DD_RETURN_IF_ERROR(session.WriteResult(args, text));
      return Exit::kOk;
    }
    std::string topic;
    for (const std::string& word : words) topic += (topic.empty() ? "" : " ") + word;
    DD_ASSIGN_OR_RETURN(text, Explain(topic));
  }
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  return Exit::kOk;
}

}  // namespace

const Command kExplainCommand = {
    .name = "explain",
    .summary = "explain an optimization, an error code, or a word of the output",
    .usage = "[TOPIC | SPEC TRACE]",
    .details =
        "With a trace: what every part of a scenario does to its step, what bounds it then, all\n"
        "assumptions, and how the kernels with the most time got their new times.",
    .examples =
        "daydream explain amp\ndaydream explain E0301\ndaydream explain critical path\n"
        "daydream explain ./mine.yaml:12\ndaydream explain 'gpu(H100),amp,graphs' run.ddtrace",
    .flags = kExplainFlags,
    .takes = {.traces = true, .most = 4},
    .run = RunExplain,
};

}  // namespace daydream
