// What a running command knows about its surroundings: where results and messages go and how
// they look. Commands ask it instead of the environment; only what records reads more than this.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "report/text/table.h"
#include "tools/diagnostics.h"
#include "tools/flags.h"

namespace daydream {

enum class Format : uint8_t { kTable, kJson, kCsv, kMarkdown };

// One result in every form that --format names; only the one that is asked for is made.
struct Forms {
  std::function<std::string()> table, json, csv, markdown;
};

class Session {
 public:
  // Reads the global flags of `args`, NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR, TERM and COLUMNS.
  void Configure(const Args& args);

  // --- messages, on standard error
  void Error(const absl::Status& status);
  void Warn(const Diagnostic& d);
  void Note(std::string_view text);  // silenced by --quiet
  // Lines for people, as they are; left out with --quiet and --message-format json.
  void Screen(std::string_view lines);
  // Shown when a person watches: the command to try next.
  void Next(std::string_view command);
  size_t warnings() const { return warnings_; }

  // --- progress: one line on standard error, only on a terminal and after a second
  void Progress(std::string_view what, double share);
  void EndProgress();

  // --- results
  bool color() const { return out_color_; }
  bool verbose() const { return verbose_; }
  // As wide as the terminal when standard output is one; else with names kept short. --wide: all.
  TableStyle table_style() const { return {.max_width = width_, .max_name = name_}; }
  std::string Bold(std::string_view text) const;
  // Writes `text` to the file of -o, or to standard output.
  absl::Status WriteResult(const Args& args, std::string_view text);
  // The same with the form that --format asks for, or the extension of -o.
  absl::Status WriteResult(const Args& args, const Forms& forms);
  unsigned jobs() const { return jobs_; }

 private:
  void Print(const Diagnostic& d, Severity severity);
  DiagnosticStyle style_;
  bool out_color_ = false, quiet_ = false, verbose_ = false, watched_ = false;
  bool progress_ = false, progress_shown_ = false;
  size_t width_ = 0, name_ = 0;
  size_t warnings_ = 0;
  unsigned jobs_ = 1;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_{};
};

// --format, or what the extension of -o says.
absl::StatusOr<Format> FormatOf(const Args& args);

// Writes `bytes` to a temporary name beside `path` and renames it. E0105 when `path` exists and
// `overwrite` is not set, or when writing fails; nothing half-written is left, not even by
// interruption.
absl::Status WriteFile(const std::string& path, std::string_view bytes, bool overwrite);
// The same for content that `write` produces under the temporary name it is given.
absl::Status WriteFileWith(const std::string& path, bool overwrite,
                           const std::function<absl::Status(const std::string&)>& write);

// Folders of DAYDREAM_OPTS_PATH, which names optimizations of the user's own, separated by ':'.
std::vector<std::string> OptionFolders();

// How many processes like this one a launcher (mpirun, srun) has started; 1 without one.
int LaunchedRanks();

// Removes temporary files when the process is interrupted and exits with 130.
void InstallInterruptHandler();

}  // namespace daydream
