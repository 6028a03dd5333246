#include "tools/config.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace daydream {
namespace {

constexpr size_t kLargestConfig = 64 << 10;  // bytes of a file that people write by hand

// Flags that mean something only where they are written.
constexpr std::string_view kNever[] = {"--help", "--output", "--force-overwrite", "--no-config"};
// Flags that change how an answer looks or how fast it comes.
constexpr std::string_view kLooks[] = {"--quiet",   "--verbose", "--color", "--progress",
                                       "--jobs",    "--format",  "--unit",  "--message-format",
                                       "--wide",    "--top",     "--title", "--max-slices",
                                       "--convert", "--no-open"};

bool IsIn(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Flags that may stand in the section of `command`, or above all sections.
std::vector<const Flag*> FlagsFor(const Command* command) {
  std::vector<const Flag*> flags;
  if (command != nullptr) {
    flags = FlagsOf(*command);
  } else {
    for (const auto group : {GlobalFlags(), ReadFlags(), ResultFlags()}) {
      for (const Flag& f : group) flags.push_back(&f);
    }
  }
  std::erase_if(flags, [](const Flag* f) { return IsIn(kNever, f->name); });
  return flags;
}

// One line of the file; knows where it is when something is wrong with it.
struct ConfigReader {
  const std::string& path;
  size_t number = 0;
  const Command* command = nullptr;

  absl::Status Wrong(std::string what, std::string fix) const {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0112",
                       .what = std::move(what),
                       .where = fmt::format("{}:{}", path, number),
                       .fix = fix + "; or --no-config to do without the file"});
  }

  absl::Status Section(std::string_view line) {
    std::vector<std::string_view> names;
    for (const Command* c : Commands()) names.push_back(c->name);
    const std::string_view name = line.ends_with(']') ? line.substr(1, line.size() - 2) : line;
    command = FindCommand(name);
    if (command != nullptr && line.ends_with(']')) return absl::OkStatus();
    return Wrong(fmt::format("'{}' is no section{}", line, DidYouMean(name, names)),
                 "a command in brackets, like [whatif]");
  }

  absl::StatusOr<const Flag*> FlagOf(std::string_view key) const {
    const std::vector<const Flag*> flags = FlagsFor(command);
    std::vector<std::string_view> names;
    for (const Flag* f : flags) {
      names.push_back(f->name.substr(2));
      if (names.back() == key) return f;
    }
    if (command != nullptr) {
      return Wrong(
          fmt::format("{} has no flag for '{}'{}", command->name, key, DidYouMean(key, names)),
          fmt::format("daydream {} --help lists the flags", command->name));
    }
    return Wrong(
        fmt::format("no flag that commands share is called '{}'{}", key, DidYouMean(key, names)),
        "flags of one command stand below its name in brackets, like [whatif]");
  }

  // The value as the command line would have it; false for a switch that is off.
  absl::StatusOr<bool> Check(const Flag& flag, std::string_view value) const {
    if (flag.value.empty()) {
      constexpr std::string_view kYesNo[] = {"yes", "no"};
      if (IsIn(kYesNo, value)) return value == "yes";
      return Wrong(fmt::format("{} is yes or no, not '{}'", flag.name.substr(2), value),
                   fmt::format("{} = yes", flag.name.substr(2)));
    }
    if (value.empty()) {
      return Wrong(fmt::format("{} has no value", flag.name.substr(2)),
                   fmt::format("{} = {}", flag.name.substr(2), flag.value));
    }
    if (!flag.choices.empty() && !IsIn(flag.choices, value)) {
      return Wrong(fmt::format("{} cannot be '{}'{}", flag.name.substr(2), value,
                               DidYouMean(value, flag.choices)),
                   fmt::format("{} = {}", flag.name.substr(2), OrList(flag.choices)));
    }
    return true;
  }
};

std::string PathOfConfig() {
  // The specification of XDG: a path that is not absolute is ignored.
  const char* base = std::getenv("XDG_CONFIG_HOME");
  if (base != nullptr && base[0] == '/') return std::string(base) + "/daydream/config";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  return std::string(home) + "/.config/daydream/config";
}

}  // namespace

absl::StatusOr<Config> Config::Read() {
  const std::string path = PathOfConfig();
  if (path.empty()) return Config();
  // A pipe would be waited for.
  std::error_code unknown;
  const bool pipe = std::filesystem::is_fifo(path, unknown);
  // A folder on the way that is closed to us, where a service keeps the HOME of who began it: what
  // is in there is another user's.
  if (unknown == std::errc::permission_denied) {
    Config none;
    none.closed_ = path;
    return none;
  }
  errno = 0;
  std::ifstream file;
  if (!pipe) file.open(path, std::ios::binary);
  if (!pipe && !file.is_open() && (errno == ENOENT || errno == ENOTDIR)) return Config();
  std::string text(kLargestConfig + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const bool ended = file.is_open() && file.eof();
  if (!ended || text.size() > kLargestConfig) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0112",
                       .what = fmt::format("cannot use {}", path),
                       .why = text.size() > kLargestConfig ? "it is larger than 64 KiB"
                                                           : "it cannot be read as a file",
                       .fix = "mend or remove it; or --no-config to do without it"});
  }
  return Parse(text, path);
}

absl::StatusOr<Config> Config::Parse(std::string_view text, std::string path) {
  Config config;
  config.path_ = std::move(path);
  ConfigReader reader{config.path_};
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = WithoutBlanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++reader.number;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      DD_RETURN_IF_ERROR(reader.Section(line));
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == line.npos) {
      return reader.Wrong(fmt::format("'{}' is no setting", line), "NAME = VALUE, like jobs = 4");
    }
    const std::string_view value = WithoutBlanks(line.substr(equals + 1));
    DD_ASSIGN_OR_RETURN(const Flag* flag, reader.FlagOf(WithoutBlanks(line.substr(0, equals))));
    DD_ASSIGN_OR_RETURN(const bool given, reader.Check(*flag, value));
    const std::string command(reader.command == nullptr ? "" : reader.command->name);
    for (const Line& l : config.lines_) {
      if (flag->repeats || l.flag != flag->name || l.command != command) continue;
      return reader.Wrong(fmt::format("{} is there twice", flag->name.substr(2)),
                          "keep one of them");
    }
    if (given) {
      config.lines_.push_back(
          {command, std::string(flag->name), flag->value.empty() ? "" : std::string(value)});
    }
  }
  return config;
}

void Config::ApplyTo(const Command& command, Args& args) const {
  const std::vector<const Flag*> flags = FlagsOf(command);
  // A command's own section says it more precisely than what stands above.
  for (const bool own : {true, false}) {
    std::vector<std::string> filled;
    for (const Line& line : lines_) {
      if (own ? line.command != command.name : !line.command.empty()) continue;
      const auto is_it = [&](const Flag* f) { return f->name == line.flag; };
      if (std::none_of(flags.begin(), flags.end(), is_it)) continue;
      const bool more = std::find(filled.begin(), filled.end(), line.flag) != filled.end();
      if (!more && args.Has(line.flag)) continue;
      args.SetDefault(line.flag, line.value);
      filled.push_back(line.flag);
    }
  }
}

std::vector<std::string> AnswersFromConfig(const Command& command, const Args& args) {
  std::vector<std::string> out;
  for (const Flag* f : FlagsOf(command)) {
    if (!args.IsDefault(f->name) || IsIn(kLooks, f->name)) continue;
    if (f->value.empty()) out.emplace_back(f->name);
    if (f->value.empty()) continue;
    for (const std::string& value : args.All(f->name)) {
      out.push_back(fmt::format("{} {}", f->name, value));
    }
  }
  return out;
}

}  // namespace daydream
