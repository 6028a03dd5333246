#include "tools/sweep/sweep_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <variant>

#include "report/questions/sweep.h"
#include "tools/version.h"
#include "trace/ddtrace/writer.h"
#include "trace/foreign/folder.h"
#include "transforms/core/source_text.h"
#include "transforms/scenario/option_file.h"
#include "transforms/scenario/option_steps.h"

namespace daydream {
namespace {

constexpr uint64_t kBasis = 14695981039346656037u;
// Eight bytes at a time: the last step of SplitMix64, which no two words pass alike. (Steele, Lea
// and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.)
uint64_t Mix(uint64_t word, uint64_t hash) {
  hash = (hash ^ word) * 0x94d049bb133111ebu;
  return hash ^ hash >> 31;
}

uint64_t HashOfBytes(std::string_view bytes, uint64_t hash) {
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    hash = Mix(word, hash);
  }
  return HashOf(bytes.substr(at), Mix(bytes.size(), hash));
}

uint64_t HashOfPlainFile(int fd, uint64_t hash) {
  std::string block(size_t{1} << 20, '\0');
  for (;;) {
    size_t filled = 0;
    while (filled < block.size()) {
      const ssize_t got = read(fd, block.data() + filled, block.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      filled += static_cast<size_t>(got);
    }
    hash = HashOfBytes(std::string_view(block).substr(0, filled), hash);
    if (filled < block.size()) return hash;
  }
}

uint64_t HashOfTrace(const Trace& trace, const std::string& path, uint64_t hash) {
  if (const uint64_t file = HashOfFile(path, hash); file != 0) return file;
  // Standard input is gone; what was read of it is not.
  const auto bytes = SerializeDdtrace(trace);
  return bytes.ok() ? HashOfBytes(*bytes, hash) : hash;
}

// A pipe, a terminal: what was read of it is gone.
bool IsReadOnce(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

// 0 when there is no such file. The time of the last change of the inode is in it: the others can
// be set back (cp -p, rsync -t).
uint64_t StampOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return 0;
  uint64_t stamp = Mix(static_cast<uint64_t>(info.st_size), kBasis);
  stamp = Mix(static_cast<uint64_t>(info.st_mtim.tv_sec), stamp);
  stamp = Mix(static_cast<uint64_t>(info.st_mtim.tv_nsec), stamp);
  stamp = Mix(static_cast<uint64_t>(info.st_ctim.tv_sec), stamp);
  stamp = Mix(static_cast<uint64_t>(info.st_ctim.tv_nsec), stamp);
  return Mix(info.st_ino, stamp);
}

}  // namespace

uint64_t HashOfFile(const std::string& path, uint64_t hash) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    // Its traces alone: journals and notes may lie beside them.
    const auto traces = TracesOfFolder(path);
    if (!traces.ok()) return 0;
    for (const std::string& file : *traces) hash = HashOfFile(file, HashOf(file, hash));
    return hash;
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info {};
  const bool plain = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  hash = plain ? HashOfPlainFile(fd, hash) : 0;
  if (fd >= 0) close(fd);
  return hash;
}

ScenarioFiles::ScenarioFiles(std::span<const std::vector<Application>> scenarios)
    : parts_({{.name = "the optimizations", .hash = kBasis}}) {
  for (const auto& scenario : scenarios) {
    for (const Application& application : scenario) Add(application);
  }
}

void ScenarioFiles::Add(const Application& application) {
  uint64_t& spelled = parts_.front().hash;
  spelled = HashOf(application.transform->name, HashOf(application.params.spelled(), spelled));
  for (const ParamSpec& spec : application.transform->params) {
    if (spec.unit == Unit::kText) AddFile(std::string(application.params.text(spec.name)));
  }
  if (application.file == nullptr) return;
  const SourceText& source = application.file->source();
  AddPart(source.path(), HashOf(source.text(), kBasis));
  for (const OptionStep& step : application.file->program().steps) {
    for (const OptionAction& action : step.actions) {
      const auto* use = std::get_if<UseAction>(&action.what);
      if (use == nullptr) continue;
      for (const Application& inner : use->applications) Add(inner);
    }
  }
}

void ScenarioFiles::AddPart(const std::string& path, uint64_t content) {
  SweepPart part{.name = fmt::format("the content of {}", path), .hash = content};
  if (std::ranges::find(parts_, part) == parts_.end()) parts_.push_back(std::move(part));
}

void ScenarioFiles::AddFile(const std::string& path) {
  if (path.empty()) return;
  for (const Stamp& known : files_) {
    if (known.path == path) return;
  }
  if (IsReadOnce(path)) read_once_ = path;
  const uint64_t stamp = StampOf(path), content = HashOfFile(path, kBasis);
  if (content == 0) return;
  AddPart(path, content);
  files_.push_back({path, stamp});
}

std::string ScenarioFiles::Changed() const {
  for (const Stamp& file : files_) {
    if (StampOf(file.path) != file.of) return file.path;
  }
  return "";
}

std::string FileReadOnce(const Args& args, std::span<const Flag* const> flags,
                         std::span<const std::string_view> besides, const ScenarioFiles& files) {
  if (!files.read_once().empty()) return files.read_once();
  for (const Flag* flag : flags) {
    if (std::find(besides.begin(), besides.end(), flag->name) != besides.end()) continue;
    for (std::string_view value : args.All(flag->name)) {
      if (IsReadOnce(std::string(value))) return std::string(value);
    }
  }
  return "";
}

absl::Status FileChanged(std::string path) {
  return MakeStatus(absl::StatusCode::kAborted,
                    {.code = "E0708",
                     .what = "a file was changed while the sweep ran",
                     .where = std::move(path),
                     .why = "rows before and after it would be of different experiments",
                     .effect = "the sweep ends; a journal keeps the rows from before the change",
                     .fix = "run the sweep again, with another journal if the change stays"});
}

std::vector<SweepPart> SweepParts(const Trace& trace, uint64_t graphs, const Args& args,
                                  std::span<const Flag* const> flags,
                                  std::span<const std::string_view> besides,
                                  const ScenarioFiles& files) {
  uint64_t program = HashOf(LongVersion(), kBasis);
  if (!CommitIsWhole()) program = HashOfFile("/proc/self/exe", program);
  std::vector<SweepPart> parts = {{.name = "the program", .hash = program}};
  for (const Flag* flag : flags) {
    if (std::find(besides.begin(), besides.end(), flag->name) != besides.end()) continue;
    uint64_t hash = kBasis;
    if (flag->value.empty()) {
      if (args.Has(flag->name)) parts.push_back({std::string(flag->name), hash});
      continue;
    }
    std::vector<std::string> values = {std::string(args.Get(flag->name))};
    if (flag->repeats) values = args.All(flag->name);
    bool any = false;
    for (const std::string& value : values) {
      hash = HashOf(value, hash);
      hash = HashOfFile(value, hash) ^ Mix(0, hash);
      any |= !value.empty();
    }
    if (any) parts.push_back({std::string(flag->name), hash});
  }
  parts.insert(parts.end(), files.parts().begin(), files.parts().end());
  parts.push_back({"the content of the trace", HashOfTrace(trace, args.positional()[0], kBasis)});
  // As well: it is of the trace as it was read, the file may be another one by now.
  parts.push_back({"the graph", graphs});
  return parts;
}

uint64_t SweepKey(std::span<const SweepPart> parts) {
  uint64_t key = kBasis;
  for (const SweepPart& part : parts) key = Mix(part.hash, HashOf(part.name, key));
  return key;
}

}  // namespace daydream
