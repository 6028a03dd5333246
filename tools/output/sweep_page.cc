#include "tools/output/sweep_page.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <vector>

#include "report/html/page.h"
#include "report/text/json_writer.h"
#include "tools/input/json_path.h"
#include "tools/output/shell_word.h"
#include "tools/version.h"

namespace daydream {
namespace {

constexpr std::string_view kSweepSchema = "\"schema\": \"daydream.sweep/1\"";
constexpr std::string_view kScaleSchema = "\"schema\": \"daydream.scale/1\"";
constexpr size_t kLargestSweep = 64 << 20;  // bytes

std::string FirstBytes(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

bool BeginsWith(std::string_view schema, const std::string& text) {
  const size_t at = text.find(schema);
  return text.starts_with('{') && at != std::string::npos && at < 8;
}

absl::Status NoSweepIn(const std::string& path, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0215",
                     .what = fmt::format("no sweep can be taken from {}", path),
                     .why = std::move(why),
                     .fix = "daydream sweep TRACE --opt SPEC --format json -o FILE.json"});
}

}  // namespace

bool IsSavedSweep(const std::string& path) {
  const std::string begin = FirstBytes(path, 64);
  return BeginsWith(kSweepSchema, begin) || BeginsWith(kScaleSchema, begin);
}

absl::StatusOr<std::string> MakeSweepPage(const Command& command, const Args& args) {
  const std::string& path = args.positional()[0];
  std::string text = FirstBytes(path, kLargestSweep);
  if (text.size() == kLargestSweep) return NoSweepIn(path, "it is larger than 64 MiB");
  const bool sweep = BeginsWith(kSweepSchema, text);
  const size_t last = text.find_last_not_of(" \r\n\t");
  if (text[last] != '}') return NoSweepIn(path, "the file is cut");
  if (ElementsAtJsonPath(text, sweep ? "rows" : "points", 1).empty()) {
    return NoSweepIn(path, "it has no rows");
  }
  std::string version = ShortVersion();
  version.pop_back();
  const std::string of = AtJsonPath(text, "trace").value_or("");
  const std::string title =
      args.Has("--title") ? std::string(args.Get("--title")) : path.substr(path.rfind('/') + 1);
  JsonWriter about;
  about.BeginObject().Key("schema").String("daydream.report/1").Key("title").String(title);
  about.Key("headline").String(fmt::format("{} of {}", sweep ? "sweep" : "scaling", of));
  about.Key("command").String(fmt::format("daydream {} {}", command.name, ShellWord(path)));
  about.Key("input").String(path).Key("version").String(version).EndObject();
  const std::vector<PageBlock> blocks = {{"about", about.Take() + "\n"},
                                         {sweep ? "sweep" : "scale", std::move(text)}};
  return HtmlPage(title, blocks);
}

}  // namespace daydream
