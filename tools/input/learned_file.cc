#include "tools/input/learned_file.h"

#include <fcntl.h>

#include "tools/locked_file.h"

namespace daydream {
namespace {

constexpr size_t kLargest = 16'000'000;

}  // namespace

absl::StatusOr<std::vector<LearnedRow>> ReadLearned(const std::string& path) {
  LockedFile file(path, O_RDONLY, "E0110");
  if (absl::Status opened = file.status(); !opened.ok()) {
    Diagnostic d = DiagnosticOf(opened);
    d.fix = "make it with --measured FILE --learn FILE";
    return MakeStatus(opened.code(), std::move(d));
  }
  DD_ASSIGN_OR_RETURN(std::string text, file.ReadAll(kLargest));
  return ParseLearned(text, path);
}

absl::Status AppendLearned(const std::string& path, const LearnedRow& row) {
  LockedFile file(path, O_RDWR | O_CREAT | O_APPEND, "E0110");
  DD_RETURN_IF_ERROR(file.status());
  if (!file.Lock()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0110",
                       .what = "cannot be locked",
                       .where = path,
                       .fix = "name a file on a disk of this machine"});
  }
  DD_ASSIGN_OR_RETURN(std::string text, file.ReadAll(kLargest));
  std::string line = FormatLearnedRow(row) + "\n";
  if (text.empty()) {
    line = fmt::format("{}\n{}", kLearnedHeader, line);
  } else {
    DD_RETURN_IF_ERROR(ParseLearned(text, path).status());
    if (!text.ends_with('\n')) line = "\n" + line;
  }
  DD_RETURN_IF_ERROR(file.Append(line));
  return file.Sync();
}

}  // namespace daydream
