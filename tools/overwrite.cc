#include "tools/overwrite.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "trace/foreign/folder.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// Flags whose file is replaced.
constexpr std::string_view kReplaced[] = {"--output", "--save", "--timeline"};
// Flags whose file gets lines at its end.
constexpr std::string_view kAppended[] = {"--journal", "--learn"};
// What flags with a file call their value (docs/cli.md).
constexpr std::string_view kFileValues[] = {"FILE", "TRACE", "GPU"};

struct GivenFile {
  std::string flag, path;  // no flag: an argument
};

bool IsIn(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A file that is not there yet can only be written twice.
bool SameFile(const GivenFile& output, const GivenFile& other) {
  std::error_code error;
  if (fs::equivalent(output.path, other.path, error)) return true;
  if (!IsIn(kReplaced, other.flag) && !IsIn(kAppended, other.flag)) return false;
  const fs::path path = fs::weakly_canonical(output.path, error);
  return !error && path == fs::weakly_canonical(other.path, error) && !error;
}

// A folder stands for its traces, "-" for what the shell connects.
void AddInput(const std::string& path, std::vector<GivenFile>& files) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const auto traces = TracesOfFolder(path);
    if (!traces.ok()) return;
    for (const std::string& trace : *traces) files.push_back({"", trace});
  } else {
    files.push_back({"", path == "-" ? "/dev/stdin" : path});
  }
}

// Words of "--opt ./mine.yaml,gpu(./new.textproto)" that name a file: of an optimization, a GPU, a
// network.
void AddFilesOfSpec(const Flag& flag, const std::string& spec, std::vector<GivenFile>& files) {
  const std::vector<std::string> words = absl::StrSplit(spec, absl::ByAnyChar(",()="));
  for (const std::string& word : words) {
    const std::string path(absl::StripAsciiWhitespace(word));
    std::error_code error;
    if (fs::is_regular_file(path, error)) files.push_back({std::string(flag.name), path});
  }
}

std::vector<GivenFile> FilesOf(const Command& command, const Args& args) {
  std::vector<GivenFile> files;
  for (const Flag* flag : FlagsOf(command)) {
    if (flag->value == "SPEC") {
      for (const std::string& spec : args.All(flag->name)) AddFilesOfSpec(*flag, spec, files);
    }
    if (!IsIn(kFileValues, flag->value)) continue;
    for (const std::string& path : args.All(flag->name)) {
      files.push_back({std::string(flag->name), path});
    }
  }
  for (const std::string& path : args.positional()) AddInput(path, files);
  return files;
}

absl::Status Refuse(const GivenFile& output, const GivenFile& other) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0105",
       .what = fmt::format("{} {} would replace what this command uses", output.flag, output.path),
       .why = other.flag.empty() ? fmt::format("it reads {}", other.path)
                                 : fmt::format("it is the file of {} {}", other.flag, other.path),
       .effect = "nothing was written",
       .fix = "choose another name"});
}

}  // namespace

absl::Status CheckOverwrites(const Command& command, const Args& args) {
  if (command.takes.command) return absl::OkStatus();  // the arguments are another program's
  const std::vector<GivenFile> files = FilesOf(command, args);
  for (const GivenFile& output : files) {
    std::error_code error;
    const bool device = fs::exists(output.path, error) && !fs::is_regular_file(output.path, error);
    if (!IsIn(kReplaced, output.flag) || output.path == "-" || device) continue;
    for (const GivenFile& other : files) {
      if (&other != &output && SameFile(output, other)) return Refuse(output, other);
    }
  }
  return absl::OkStatus();
}

}  // namespace daydream
