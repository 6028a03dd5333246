// What a running command knows about its surroundings: where results and messages go and how
// they look. Commands ask it instead of the environment. More than this is read by what records, by
// the file of defaults (tools/config.h), and by `view`, which needs a screen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "report/text/format.h"
#include "report/text/table.h"
#include "tools/diagnostics.h"
#include "tools/flags.h"
#include "tools/running/interrupt.h"
#include "tools/running/progress.h"

namespace daydream {

enum class Format : uint8_t { kTable, kJson, kCsv, kMarkdown };

// One result in every form that --format names; only the one that is asked for is made.
struct Forms {
  std::function<std::string()> table, json, csv, markdown;
};

// Who hears of messages and progress where there is no terminal: another program that asks.
struct Listener {
  std::function<void(const Diagnostic&, Severity)> message;
  std::function<void()> progress;  // from any thread; what it throws ends the work
};

class Session {
 public:
  // Reads the global flags of `args`, NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR, TERM and COLUMNS.
  void Configure(const Args& args);
  // From now on messages and progress go there, and nothing to standard error.
  void TellTo(Listener listener);
  // ... and what standard output would get goes to the end of `text`: as wide as it likes, or as
  // for a terminal of `width` columns.
  void WriteTo(std::string* text, size_t width = 0);

  // --- messages, on standard error; --quiet leaves the errors
  void Error(const absl::Status& status);
  void Warn(const Diagnostic& d);
  void Note(std::string_view text);
  // What a note of this would print, for who prints it later; "" where it would not.
  std::string NoteText(const Diagnostic& d) const;
  // For answers that do not hang on each other, "options": those that are done when it is
  // interrupted are the result.
  InterruptTexts KeepsDone(std::string_view answers) const;
  // Lines for people, as they are; left out with --quiet and --message-format json.
  void Screen(std::string_view lines);
  // Shown when a person watches: the command to try next.
  void Next(std::string_view command);
  size_t warnings() const { return warnings_; }

  // --- progress, on standard error and after a second: one line that is written over on a
  // terminal; elsewhere only with --progress always, a line a second (tools/running/progress.h)
  // The phase in which the command is, told from any thread: until another one is, or the end.
  void Progress(const Doing& doing);
  void Progress(std::string_view what, uint64_t done = 0, uint64_t total = 0) {
    Progress({.what = what, .done = done, .total = total});
  }
  void EndProgress();
  // What Progress() was told last: for the message when memory ends.
  std::string doing() const { return progress_->what(); }
  // Bytes that this takes, by an estimate; 0 = not known.
  uint64_t needs() const { return needs_; }
  void Needs(uint64_t bytes) { needs_ = bytes; }

  // --- results
  bool color() const { return out_color_; }
  bool verbose() const { return verbose_; }
  // As wide as the terminal when standard output is one; else with names kept short. --wide: all.
  TableStyle table_style() const {
    return {.max_width = width_, .max_name = name_, .color = out_color_};
  }
  // Of printed times, by --unit: for UnitFor() and FormatTime() (report/text/format.h).
  TimeUnit unit() const { return unit_; }
  std::string Bold(std::string_view text) const;
  // Writes `text` to the file of -o, or to standard output, without hidden characters
  // (report/text/escape.h).
  absl::Status WriteResult(const Args& args, std::string_view text);
  // The same for formats that are no text, or take care of that themselves.
  absl::Status WriteBytes(const Args& args, std::string_view bytes);
  // The same with the form that --format asks for, or the extension of -o.
  absl::Status WriteResult(const Args& args, const Forms& forms);
  unsigned jobs() const { return jobs_; }

  // Flags that the answer depends on and that nobody gave: a note, and `config` in every JSON.
  void TellDefaults(const std::string& file, std::vector<std::string> flags);

 private:
  void Print(const Diagnostic& d, Severity severity);
  void AddConfig(std::string& json) const;
  Listener listener_;
  DiagnosticStyle style_;
  bool out_color_ = false, quiet_ = false, verbose_ = false, watched_ = false;
  bool line_ = false;  // of progress, on the terminal
  size_t width_ = 0, name_ = 0;
  TimeUnit unit_ = TimeUnit::kAuto;
  size_t warnings_ = 0;
  unsigned jobs_ = 1;
  std::unique_ptr<ProgressTeller> progress_ = std::make_unique<ProgressTeller>();
  uint64_t needs_ = 0;
  std::string* written_ = nullptr;
  std::string config_file_;
  std::vector<std::string> config_flags_;
};

// --format, or what the extension of -o says.
absl::StatusOr<Format> FormatOf(const Args& args);

// Writes `bytes` to a file that appears whole or not at all (trace/bytes/atomic_file.h). E0105 when
// `path` exists and `overwrite` is not set, or when writing fails.
absl::Status WriteFile(const std::string& path, std::string_view bytes, bool overwrite);

// Folders of DAYDREAM_OPTS_PATH, which names optimizations of the user's own, separated by ':'.
std::vector<std::string> OptionFolders();

// How many processes like this one a launcher (mpirun, srun) has started; 1 without one.
int LaunchedRanks();

}  // namespace daydream
