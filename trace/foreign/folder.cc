#include "trace/foreign/folder.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "trace/foreign/formats.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::string>;

// In capitals or not.
bool EndsIn(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  name.remove_prefix(name.size() - ending.size());
  return std::equal(name.begin(), name.end(), ending.begin(), [](char a, char b) {
    return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b);
  });
}

Files FilesEndingIn(const Files& files, std::initializer_list<std::string_view> endings) {
  Files found;
  for (const std::string& file : files) {
    const bool ends = std::any_of(endings.begin(), endings.end(),
                                  [&](std::string_view e) { return EndsIn(file, e); });
    if (ends) found.push_back(file);
  }
  return found;
}

// JAX writes HOST.trace.json.gz, which is a part for TensorBoard, beside HOST.xplane.pb.
bool IsBesideXplane(std::string_view file, const Files& files) {
  constexpr std::string_view kPart = ".trace.json.gz";
  if (!file.ends_with(kPart)) return false;
  file.remove_suffix(kPart.size());
  return std::find(files.begin(), files.end(), std::string(file) + ".xplane.pb") != files.end();
}

// Every kind but our own; the first that is there is read.
std::vector<Files> OtherKinds(const Files& files) {
  Files json = FilesEndingIn(files, {".json", ".json.gz", ".json.zst"}), parts;
  std::erase_if(json, [&](const std::string& f) {
    if (!IsBesideXplane(f, files)) return false;
    parts.push_back(f);
    return true;
  });
  std::vector<Files> kinds = {json};
  for (std::string_view ending : {".sqlite", ".et", ".db", ".rpd", ".xplane.pb"}) {
    kinds.push_back(FilesEndingIn(files, {ending}));
  }
  kinds.push_back(parts);
  return kinds;
}

// The folders below that hold a trace, as that of TensorBoard does some levels down; none when
// there is none near.
Files FoldersBelow(const std::string& folder) {
  constexpr int kDeepest = 4, kMost = 10000;
  std::set<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (int seen = 0; !error && it != end && seen < kMost; it.increment(error), ++seen) {
    if (it.depth() >= kDeepest) it.disable_recursion_pending();
    const Files one = {it->path().string()};
    bool trace = EndsIn(one[0], ".ddtrace");
    for (const Files& kind : OtherKinds(one)) trace = trace || !kind.empty();
    if (trace && it->is_regular_file(error)) found.insert(it->path().parent_path().string());
  }
  return {found.begin(), found.end()};
}

absl::Status NoTrace(const std::string& folder) {
  Diagnostic d{.code = "E0430", .what = "this folder holds no trace", .where = folder};
  const Files below = FoldersBelow(folder);
  if (below.empty()) {
    d.why =
        "no name in it ends in .ddtrace, .json, .json.gz, .json.zst, .sqlite, .et, .db, .rpd "
        "or .xplane.pb";
    d.fix = "name the folder with the traces of one run, or one trace";
  } else if (below.size() == 1) {
    d.why = "folders below it are not looked into, and one of them does";
    d.fix = "name that one: " + below[0];
  } else {
    d.why = fmt::format("folders below it are not looked into, and {} of them do", below.size());
    d.fix = fmt::format(
        "name one of them, as {}; where the nodes of one run wrote a folder each, "
        "bring their files into one",
        below[0]);
  }
  return MakeStatus(absl::StatusCode::kNotFound, std::move(d));
}

// Those of one kind that no file of `own` was imported from.
Files WithoutImported(const Files& kind, const Files& own) {
  Files others;
  for (const std::string& file : kind) {
    const std::string imported = NameOfImported(file);
    if (std::find(own.begin(), own.end(), imported) == own.end()) others.push_back(file);
  }
  return others;
}

void Append(const Files& more, Files& files) {
  files.insert(files.end(), more.begin(), more.end());
}

}  // namespace

std::string NameOfImported(std::string file) {
  for (std::string_view ending : {".gz", ".zst", ".json", ".trace", ".pt", ".sqlite", ".nsys-rep",
                                  ".et", ".rpd", ".db", ".xplane.pb"}) {
    if (file.size() > ending.size() && EndsIn(file, ending)) {
      file.resize(file.size() - ending.size());
    }
  }
  return file + ".ddtrace";
}

absl::StatusOr<FolderTraces> FindTraces(const std::string& folder) {
  Files files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  FolderTraces traces;
  const Files own = FilesEndingIn(files, {".ddtrace"});
  traces.files = own;
  for (const Files& kind : OtherKinds(files)) {
    const Files others = WithoutImported(kind, own);
    // One that was imported says what the rest of its kind is.
    const bool read = own.empty() ? traces.files.empty() : others.size() < kind.size();
    Append(others, read ? traces.files : traces.not_read);
  }
  std::sort(traces.files.begin(), traces.files.end());
  if (!traces.files.empty()) return traces;
  DD_RETURN_IF_ERROR(CheckFolder(folder));
  return NoTrace(folder);
}

absl::StatusOr<std::vector<std::string>> TracesOfFolder(const std::string& folder) {
  DD_ASSIGN_OR_RETURN(FolderTraces traces, FindTraces(folder));
  return std::move(traces.files);
}

}  // namespace daydream
