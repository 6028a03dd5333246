#include "tools/input/learned_file.h"

#include <fcntl.h>

#include "tools/locked_file.h"

namespace daydream {
namespace {

constexpr size_t kLargestLearned = 16'000'000;

// The part of `text` that was written whole: all but a last line without an end. One that can be
// read may have lost the end of a name or of a time, and would count as another measurement.
std::string_view WholeLines(std::string_view text, const std::string& path) {
  if (text.empty() || text.ends_with('\n')) return text;
  if (kLearnedHeader.starts_with(text)) return {};
  const std::string_view whole = text.substr(0, text.rfind('\n') + 1);
  const bool comment = text.substr(whole.size()).starts_with('#');
  return !comment && ParseLearned(whole, path).ok() ? whole : text;
}

void WarnOfCut(std::string_view text, std::string_view whole, const std::string& path,
               Session& session) {
  if (whole.size() == text.size()) return;
  session.Warn({.code = "W0110",
                .what = "the last line is cut off",
                .where = path,
                .why = "who wrote it was killed, or the disk was full",
                .effect = "that measurement is left out",
                .fix = "end the line with a newline if it is whole"});
}

}  // namespace

absl::StatusOr<std::vector<LearnedRow>> ReadLearned(const std::string& path, Session& session) {
  LockedFile file(path, O_RDONLY, "E0110");
  if (absl::Status opened = file.status(); !opened.ok()) {
    Diagnostic d = DiagnosticOf(opened);
    d.fix = "make it with --measured FILE --learn FILE";
    return MakeStatus(opened.code(), std::move(d));
  }
  DD_ASSIGN_OR_RETURN(std::string text, file.ReadAll(kLargestLearned));
  const std::string_view whole = WholeLines(text, path);
  WarnOfCut(text, whole, path, session);
  return ParseLearned(whole, path);
}

absl::Status AppendLearned(const std::string& path, const LearnedRow& row, Session& session) {
  LockedFile file(path, O_RDWR | O_CREAT | O_APPEND, "E0110");
  DD_RETURN_IF_ERROR(file.status());
  if (!file.Lock()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0110",
                       .what = "cannot be locked",
                       .where = path,
                       .fix = "name a file on a disk of this machine"});
  }
  DD_ASSIGN_OR_RETURN(std::string text, file.ReadAll(kLargestLearned));
  const std::string_view whole = WholeLines(text, path);
  std::string line = FormatLearnedRow(row) + "\n";
  if (whole.empty()) {
    line = fmt::format("{}\n{}", kLearnedHeader, line);
  } else {
    DD_RETURN_IF_ERROR(ParseLearned(whole, path).status());
    if (!whole.ends_with('\n')) line = "\n" + line;
  }
  WarnOfCut(text, whole, path, session);
  if (whole.size() < text.size()) DD_RETURN_IF_ERROR(file.Truncate(whole.size()));
  DD_RETURN_IF_ERROR(file.Append(line));
  return file.Sync();
}

}  // namespace daydream
