#include "tools/session.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "report/text/escape.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "tools/running/interrupt.h"
#include "trace/bytes/atomic_file.h"

namespace daydream {
namespace {

// Of a name in a table, without --wide: kernels of templates have names of some hundred.
constexpr size_t kLongestName = 60;

bool EnvSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// https://no-color.org and https://bixense.com/clicolors.
bool UseColor(std::string_view wish, int fd) {
  if (wish == "always") return true;
  if (wish == "never" || EnvSet("NO_COLOR")) return false;
  if (EnvSet("FORCE_COLOR")) return true;
  const char* force = std::getenv("CLICOLOR_FORCE");
  if (force != nullptr && *force != '\0' && std::strcmp(force, "0") != 0) return true;
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

constexpr size_t kWidestMessage = 80;  // as prose in results

// Of the line of a terminal.
constexpr std::chrono::milliseconds kRewritten{100};

// A line a second; for tests the time between two, in milliseconds.
ProgressTeller::Pace PaceOfLines() {
  const char* set = std::getenv("DAYDREAM_PROGRESS_MS");
  if (set == nullptr || *set == '\0') return {};
  const std::chrono::milliseconds pause(std::max(0, std::atoi(set)));
  return {.first = pause, .pause = pause};
}

// By this process: an interruption says so.
std::atomic<bool> something_written = false;

// A command that a shell reads as one line, with breaks before flags where `width` is not enough
// behind `indent` columns.
std::string Folded(std::string_view command, size_t width, size_t indent) {
  std::string out;
  size_t room = width;
  while (width > 0 && indent + command.size() > room) {
    size_t at = std::string_view::npos;
    bool quoted = false;
    for (size_t i = 0; i < command.size(); ++i) {
      quoted ^= command[i] == '\'';
      const bool flag = i > 0 && !quoted && command.substr(i).starts_with(" --");
      if (flag && (at == std::string_view::npos || indent + i + 2 <= room)) at = i;
    }
    if (at == std::string_view::npos) break;
    out += fmt::format("{} \\\n{:{}}", command.substr(0, at), "", indent + 1);
    command.remove_prefix(at + 1);
    room = width - 1;
  }
  return out.append(command);
}

// COLUMNS holds in a pipe, too: whoever sets it wants that width.
size_t TerminalWidth(int file) {
  constexpr size_t kNarrowest = 40, kWidest = 10'000;
  size_t columns = 0;
  const char* set = std::getenv("COLUMNS");
  const std::string_view text = set == nullptr ? "" : set;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), columns);
  if (read.ec == std::errc() && columns >= kNarrowest) {
    return std::min(columns, kWidest);
  }
  if (isatty(file) != 1) return 0;
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return 100;
}

absl::Status CannotWrite(const std::string& path, std::string_view why, std::string_view fix) {
  return MakeStatus(absl::StatusCode::kUnavailable, {.code = "E0105",
                                                     .what = fmt::format("cannot write {}", path),
                                                     .why = std::string(why),
                                                     .fix = std::string(fix)});
}

absl::Status WriteAll(std::FILE* file, std::string_view bytes, const std::string& name) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && std::fflush(file) == 0) {
    return absl::OkStatus();
  }
  // Where SIGPIPE is ignored, a reader that has seen enough (`| head`) is told like this.
  if (file == stdout && errno == EPIPE) return absl::OkStatus();
  return CannotWrite(name, std::strerror(errno), "");
}

// Whoever names a page wants one, and not a table of text in a file of that name.
absl::Status NoPage(std::string_view path) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("{} would hold a table of text and no page", path),
                     .fix = "daydream report TRACE --opt SPEC -o FILE.html writes a page; for a "
                            "table: .txt, .md, .csv or .json"});
}

}  // namespace

std::vector<std::string> OptionFolders() {
  std::vector<std::string> folders;
  const char* value = std::getenv("DAYDREAM_OPTS_PATH");
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

int LaunchedRanks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* size = std::getenv(name);
    if (size != nullptr) return std::max(1, std::atoi(size));
  }
  return 1;
}

void Session::Configure(const Args& args) {
  style_.color = UseColor(args.Get("--color"), STDERR_FILENO);
  style_.json = args.Get("--message-format") == "json";
  // A file is no terminal, whatever standard output is.
  const bool to_file = args.Has("--output") && args.Get("--output") != "-";
  out_color_ =
      to_file ? args.Get("--color") == "always" : UseColor(args.Get("--color"), STDOUT_FILENO);
  const bool on_screen = isatty(STDERR_FILENO) == 1 && !args.Has("--wide");
  style_.width = on_screen ? std::min(TerminalWidth(STDERR_FILENO), kWidestMessage) : 0;
  quiet_ = args.Has("--quiet");
  verbose_ = args.Has("--verbose");
  watched_ = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && !style_.json;
  const std::string_view progress = args.Get("--progress");
  const bool terminal = isatty(STDERR_FILENO) == 1;
  line_ = terminal && !style_.json && !quiet_ && progress != "never";
  const bool lines = !terminal && !style_.json && !quiet_ && progress == "always";
  progress_->Print(line_   ? std::optional(ProgressTeller::Lines::kOne)
                   : lines ? std::optional(ProgressTeller::Lines::kEach)
                           : std::nullopt,
                   line_ ? ProgressTeller::Pace{.pause = kRewritten} : PaceOfLines());
  width_ = args.Has("--wide") ? 0 : TerminalWidth(STDOUT_FILENO);
  name_ = args.Has("--wide") ? 0 : kLongestName;
  unit_ = ParseTimeUnit(args.Get("--unit"));
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  // What is no count is refused by main().
  const double jobs = PlainNumber(args.Get("--jobs")).value_or(std::min(cores, 8u));
  jobs_ = static_cast<unsigned>(std::clamp(jobs, 1.0, 256.0));
}

void Session::TellTo(Listener listener) {
  listener_ = std::move(listener);
  progress_->Print(std::nullopt, {});
}

void Session::WriteTo(std::string* text, size_t width) {
  written_ = text;
  width_ = width;
}

void Session::Print(const Diagnostic& d, Severity severity) {
  if (listener_.message) return listener_.message(d, severity);
  const auto alone = progress_->Hold();
  std::string text = FormatDiagnostic(d, severity, style_);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Session::Error(const absl::Status& status) { Print(DiagnosticOf(status), Severity::kError); }

void Session::Warn(const Diagnostic& d) {
  ++warnings_;
  if (!quiet_) Print(d, Severity::kWarning);
}

void Session::Note(std::string_view text) {
  if (!quiet_) Print({.what = std::string(text)}, Severity::kNote);
}

std::string Session::NoteText(const Diagnostic& d) const {
  if (quiet_ || listener_.message) return "";
  return (line_ ? "\r\033[K" : "") + FormatDiagnostic(d, Severity::kNote, style_);
}

InterruptTexts Session::KeepsDone(std::string_view answers) const {
  return {NoteText({.what = fmt::format("interrupted: {{N}} of {{ALL}} {} are done, and lost",
                                        answers)}),
          NoteText({.what = fmt::format("stopping after the {} that are begun", answers),
                    .effect = "Ctrl-C again ends at once, without them"})};
}

void Session::Screen(std::string_view lines) {
  if (quiet_ || style_.json || listener_.message) return;
  const auto alone = progress_->Hold();
  const std::string safe = PrintableText(lines, style_.color);
  std::fwrite(safe.data(), 1, safe.size(), stderr);
}

void Session::Next(std::string_view command) {
  if (!watched_ || quiet_ || listener_.message) return;
  EndProgress();
  constexpr std::string_view kBegin = "  next: ";
  const std::string text = Folded(command, style_.width, kBegin.size());
  std::fprintf(stderr, "\n%s%s\n", std::string(kBegin).c_str(), text.c_str());
}

void Session::Progress(const Doing& doing) {
  if (progress_->Tell(doing) && !listener_.message) {
    SayWhenInterrupted(
        NoteText({.what = fmt::format("interrupted while {}{}", doing.what,
                                      something_written ? "" : ": nothing was written")}));
  }
  if (listener_.progress) listener_.progress();
}

void Session::EndProgress() {
  progress_->End();
  if (!listener_.message) SayWhenInterrupted("");
}

std::string Session::Bold(std::string_view text) const {
  return out_color_ ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}

void Session::TellDefaults(const std::string& file, std::vector<std::string> flags) {
  config_file_ = file;
  config_flags_ = std::move(flags);
  std::string list;
  for (const std::string& f : config_flags_) list += (list.empty() ? "" : ", ") + f;
  Note(fmt::format("{} has {}", file, list));
}

absl::StatusOr<Format> FormatOf(const Args& args) {
  std::string_view name = args.Get("--format");
  // A default for --format is for the screen: the name of a file says more.
  if (!args.Has("--format") || args.IsDefault("--format")) {
    std::string_view path = args.Get("--output");
    size_t dot = path.rfind('.');
    std::string_view extension = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    if (extension == "html" || extension == "htm") return NoPage(path);
    if (extension == "json" || extension == "csv" || extension == "md") name = extension;
  }
  if (name == "json") return Format::kJson;
  if (name == "csv") return Format::kCsv;
  if (name == "md") return Format::kMarkdown;
  return Format::kTable;
}

absl::Status Session::WriteResult(const Args& args, std::string_view text) {
  return WriteBytes(args, PrintableText(text, out_color_));
}

absl::Status Session::WriteBytes(const Args& args, std::string_view text) {
  EndProgress();
  std::string path(args.Get("--output"));
  const bool to_output = path.empty() || path == "-";
  if (to_output && written_ != nullptr) {
    written_->append(text);
    return absl::OkStatus();
  }
  if (to_output) something_written = true;
  if (to_output) return WriteAll(stdout, text, "standard output");
  Progress(fmt::format("writing {}", path));
  const absl::Status written = WriteFile(path, text, args.Has("--force-overwrite"));
  EndProgress();
  DD_RETURN_IF_ERROR(written);
  Note(fmt::format("wrote {} ({})", path, FormatBytes(text.size())));
  return absl::OkStatus();
}

absl::Status Session::WriteResult(const Args& args, const Forms& forms) {
  DD_ASSIGN_OR_RETURN(const Format format, FormatOf(args));
  const auto& make = format == Format::kJson       ? forms.json
                     : format == Format::kCsv      ? forms.csv
                     : format == Format::kMarkdown ? forms.markdown
                                                   : forms.table;
  std::string text = make();
  if (format == Format::kJson && !config_flags_.empty()) AddConfig(text);
  return WriteResult(args, text);
}

// As the last field of the object that `json` is.
void Session::AddConfig(std::string& json) const {
  const size_t close = json.rfind('}');
  if (!json.starts_with('{') || close == std::string::npos) return;
  JsonWriter config(0);
  config.BeginObject().Key("file").String(config_file_).Key("flags").BeginArray();
  for (const std::string& f : config_flags_) config.String(f);
  config.EndArray().EndObject();
  const size_t last = json.find_last_not_of(" \n", close - 1);
  json.insert(last + 1, ",\n  \"config\": " + config.Take());
}

absl::Status WriteFile(const std::string& path, std::string_view bytes, bool overwrite) {
  auto file = AtomicFile::Create(path, overwrite);
  if (absl::IsAlreadyExists(file.status())) {
    return CannotWrite(path, "the file exists", "choose another name, or add -f to replace it");
  }
  DD_RETURN_IF_ERROR(file.status());
  DD_RETURN_IF_ERROR(file->Append(bytes));
  DD_RETURN_IF_ERROR(file->Commit());
  something_written = true;
  return absl::OkStatus();
}

}  // namespace daydream
