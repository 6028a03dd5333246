#include "tools/output/sweep_page.h"

#include <string_view>
#include <vector>

#include "base/shell_word.h"
#include "report/html/page.h"
#include "report/text/json_writer.h"
#include "tools/input/json_path.h"
#include "tools/input/saved_json.h"
#include "tools/output/shown_path.h"
#include "tools/version.h"

namespace daydream {
namespace {

constexpr std::string_view kSweepSchema = "daydream.sweep/1";
constexpr std::string_view kScaleSchema = "daydream.scale/1";
constexpr SavedKind kSavedSweep = {
    .what = "sweep", .fix = "daydream sweep TRACE --opt SPEC --format json -o FILE.json"};
constexpr SavedKind kSavedScale = {
    .what = "scaling curve",
    .fix = "daydream scale TRACE --fabric NAME --format json -o FILE.json"};

}  // namespace

bool IsSavedSweep(const std::string& path) {
  return IsSavedJson(path, kSweepSchema) || IsSavedJson(path, kScaleSchema);
}

absl::StatusOr<std::string> MakeSweepPage(const Command& command, const Args& args) {
  const std::string& path = args.positional()[0];
  const bool sweep = IsSavedJson(path, kSweepSchema);
  const SavedKind& kind = sweep ? kSavedSweep : kSavedScale;
  DD_ASSIGN_OR_RETURN(std::string text, ReadSavedJson(path, kind));
  const std::string_view list = sweep ? "rows" : "points";
  const std::vector<std::string> rows = ElementsAtJsonPath(text, list, 1);
  if (rows.empty()) return NotSaved(path, kind, fmt::format("it has no {}", list));
  if (!rows[0].starts_with('{')) {
    return NotSaved(path, kind, fmt::format("the first of its {} is no object", list));
  }
  std::string version = ShortVersion();
  version.pop_back();
  const std::string of = AtJsonPath(text, "trace").value_or("");
  const std::string title =
      args.Has("--title") ? std::string(args.Get("--title")) : WithoutFolders(path);
  JsonWriter about;
  about.BeginObject().Key("schema").String("daydream.report/1").Key("title").String(title);
  about.Key("headline").String(fmt::format("{} of {}", sweep ? "sweep" : "scaling", of));
  about.Key("command").String(
      fmt::format("daydream {} {}", command.name, ShellWord(WithoutFolders(path))));
  about.Key("input").String(WithoutFolders(path)).Key("version").String(version).EndObject();
  const std::vector<PageBlock> blocks = {{"about", about.Take() + "\n"},
                                         {sweep ? "sweep" : "scale", std::move(text)}};
  return HtmlPage(title, blocks);
}

}  // namespace daydream
