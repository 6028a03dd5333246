#include "tools/record/session.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "trace/bytes/atomic_file.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTraceEnding = ".ddtrace";
// More numbered recordings than anybody keeps in one folder.
constexpr int64_t kMostNumbers = 1'000'000;

absl::Status CannotRecord(const std::string& path, std::string why, std::string fix) {
  return MakeStatus(absl::StatusCode::kUnavailable, {.code = "E0105",
                                                     .what = fmt::format("cannot write {}", path),
                                                     .why = std::move(why),
                                                     .fix = std::move(fix)});
}

// "run.ddtrace", "run.rank3.ddtrace" and "run.pid77.ddtrace" are all names for "run".
bool IsNameFor(const std::string& stem, const std::string& file) {
  if (!file.starts_with(stem) || !file.ends_with(kTraceEnding)) return false;
  if (file.size() < stem.size() + kTraceEnding.size()) return false;
  std::string middle = file.substr(stem.size(), file.size() - stem.size() - kTraceEnding.size());
  for (std::string_view part : {".rank", ".pid"}) {
    bool number =
        middle.size() > part.size() && middle[part.size()] >= '0' && middle[part.size()] <= '9';
    if (middle.starts_with(part) && number) return true;
  }
  return middle.empty();
}

// A recording of this name, or "".
std::string Existing(const std::string& stem) {
  fs::path path(stem);
  fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (IsNameFor(path.filename().string(), name)) {
      found.push_back(path.has_parent_path() ? entry.path().string() : name);
    }
  }
  return found.empty() ? "" : *std::min_element(found.begin(), found.end());
}

absl::StatusOr<std::string> RandomId() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return CannotRecord("a session id", std::strerror(errno), "");
  }
  std::string id;
  for (unsigned char b : bytes) id += fmt::format("{:02x}", b);
  return id;
}

// "train.1234.5678.ddtrace" -> 1234, 0 for other names.
int64_t PidOf(const std::string& name) {
  std::array<size_t, 3> dots{};
  size_t at = std::string::npos;
  for (size_t& dot : dots) {
    dot = name.rfind('.', at);
    if (dot == std::string::npos || dot == 0) return 0;
    at = dot - 1;
  }
  int64_t pid = 0;
  std::from_chars(name.data() + dots[2] + 1, name.data() + dots[1], pid);
  return pid;
}

// Moves `from` to `to`; 0 or errno. Replaces `to` only with `overwrite`, without a moment at which
// another process could lose its file.
int Move(const std::string& from, const std::string& to, bool overwrite) {
  if (overwrite) return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return 0;
  }
  // File systems without hard links.
  bool no_links = errno == EPERM || errno == ENOTSUP || errno == ENOSYS || errno == EMLINK;
  if (!no_links) return errno;
  if (access(to.c_str(), F_OK) == 0) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

absl::StatusOr<RecordSession> RecordSession::Begin(OutputPattern pattern, int64_t own_rank,
                                                   bool overwrite) {
  RecordSession session;
  session.pattern_ = std::move(pattern);
  session.overwrite_ = overwrite;
  session.values_ = {.pid = getpid(), .rank = own_rank, .number = 1};
  DD_ASSIGN_OR_RETURN(session.id_, RandomId());
  bool numbered = session.pattern_.Has('n');
  for (;; ++session.values_.number) {
    bool last = !numbered || session.values_.number == kMostNumbers;
    std::string stem = session.NameOf({.rank = own_rank}, own_rank >= 0, false);
    stem.resize(stem.size() - kTraceEnding.size());
    std::string there = overwrite && !numbered ? "" : Existing(stem);
    if (!there.empty() && !last) continue;
    if (!there.empty()) {
      return CannotRecord(there, "the file exists", "choose another name, or add -f to replace it");
    }
    std::string folder = stem + ".session";
    if (mkdir(folder.c_str(), 0777) == 0) {
      std::error_code error;
      session.folder_ = fs::absolute(folder, error).string();
      return session;
    }
    if (errno == EEXIST && !last) continue;
    if (errno == EEXIST) {
      return CannotRecord(stem + std::string(kTraceEnding), fmt::format("{} exists", folder),
                          "a recording is being made, or one was cut short and lies in it: "
                          "choose another name, or move it away");
    }
    return CannotRecord(stem + std::string(kTraceEnding), std::strerror(errno), "");
  }
}

std::vector<RecordedFile> RecordSession::Files() const {
  std::vector<RecordedFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(kTraceEnding)) files.push_back({entry.path().string(), PidOf(name)});
  }
  std::sort(files.begin(), files.end(),
            [](const RecordedFile& a, const RecordedFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> RecordSession::TakeRefusals() const {
  constexpr std::string_view kMark = ".ddtrace.errno";
  std::vector<std::string> refusals;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string path = entry.path().string();
    const size_t at = path.rfind(kMark);
    if (at == path.npos) continue;
    int number = 0;
    std::from_chars(path.data() + at + kMark.size(), path.data() + path.size(), number);
    refusals.push_back(
        fmt::format("cannot write {}: {}", entry.path().stem().string(), std::strerror(number)));
    unlink(path.c_str());
  }
  return refusals;
}

std::string RecordSession::NameOf(const RecordedFile& file, bool with_rank, bool with_pid) const {
  OutputValues values = values_;
  if (file.pid != 0) values.pid = file.pid;
  values.rank = file.rank >= 0 ? file.rank : values_.rank;
  std::string name = pattern_.Stem(values);
  if (with_rank && values.rank >= 0 && !pattern_.Has('r')) {
    name += fmt::format(".rank{}", values.rank);
  }
  if (with_pid) name += fmt::format(".pid{}", values.pid);
  return name + std::string(kTraceEnding);
}

absl::Status RecordSession::Name(std::vector<RecordedFile>& files) const {
  bool several = files.size() > 1 || values_.rank >= 0;
  std::map<std::string, int> uses;
  for (const RecordedFile& file : files) ++uses[NameOf(file, several, false)];
  std::set<std::string> given;
  absl::Status first_problem;
  for (RecordedFile& file : files) {
    std::string name = NameOf(file, several, false);
    if (uses[name] > 1) name = NameOf(file, several, true);
    // One process that executed another program has one id and two files.
    std::string stem = name.substr(0, name.size() - kTraceEnding.size());
    for (int n = 2; !given.insert(name).second; ++n)
      name = fmt::format("{}-{}{}", stem, n, kTraceEnding);
    int error = Move(file.path, name, overwrite_);
    if (error == 0) {
      SyncFolderOf(name);
      file.path = name;
    } else if (first_problem.ok()) {
      first_problem = CannotRecord(name, std::strerror(error), "");
    }
  }
  return first_problem;
}

bool RecordSession::RemoveFolder() const { return rmdir(folder_.c_str()) == 0 || errno == ENOENT; }

}  // namespace daydream
