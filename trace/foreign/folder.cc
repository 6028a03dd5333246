#include "trace/foreign/folder.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "trace/foreign/formats.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> FilesEndingIn(const std::vector<std::string>& files,
                                       std::initializer_list<std::string_view> endings) {
  std::vector<std::string> found;
  for (const std::string& file : files) {
    const bool ends = std::any_of(endings.begin(), endings.end(),
                                  [&](std::string_view e) { return file.ends_with(e); });
    if (ends) found.push_back(file);
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TracesOfFolder(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> traces = FilesEndingIn(files, {".ddtrace"});
  if (traces.empty()) traces = FilesEndingIn(files, {".json", ".json.gz", ".json.zst"});
  for (std::string_view ending : {".sqlite", ".et", ".db", ".rpd", ".xplane.pb"}) {
    if (traces.empty()) traces = FilesEndingIn(files, {ending});
  }
  if (!traces.empty()) return traces;
  DD_RETURN_IF_ERROR(CheckFolder(folder));
  return MakeStatus(absl::StatusCode::kNotFound,
                    {.code = "E0430",
                     .what = "this folder holds no trace",
                     .where = folder,
                     .why = "no name in it ends in .ddtrace, .json, .json.gz, .json.zst, .sqlite, "
                            ".et, .db, .rpd or .xplane.pb",
                     .fix = "name the folder with the traces of one run, or one trace"});
}

}  // namespace daydream
