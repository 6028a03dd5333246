#include "tools/sweep/journal.h"

#include <fcntl.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace daydream {
namespace {

// Room for kMostSweepPoints rows with messages.
constexpr size_t kLargestJournal = 200'000'000;

absl::Status Fails(std::string_view code, std::string what, std::string where, std::string fix,
                   std::string why = "") {
  return MakeStatus(absl::StatusCode::kInvalidArgument, {.code = std::string(code),
                                                         .what = std::move(what),
                                                         .where = std::move(where),
                                                         .why = std::move(why),
                                                         .fix = std::move(fix)});
}

// Sorts by index and drops repetitions. Two different rows of one index are refused.
absl::Status SortRows(std::vector<SweepRow>& rows, const std::string& where) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const SweepRow& a, const SweepRow& b) { return a.index < b.index; });
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].index != rows[i - 1].index) continue;
    return Fails("E0705",
                 fmt::format("row {} is there twice, with different values", rows[i].index), where,
                 "leave out the file that does not belong here");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SweepJournal> SweepJournal::Open(const std::string& path, const SweepHead& head) {
  auto file = std::make_unique<LockedFile>(path, O_RDWR | O_CREAT | O_APPEND, "E0703");
  DD_RETURN_IF_ERROR(file->status());
  if (!file->TryLock()) {
    return Fails("E0703", "another process writes this journal", path,
                 "wait for it, or give every shard a journal of its own");
  }
  DD_ASSIGN_OR_RETURN(std::string text, file->ReadAll(kLargestJournal));
  const std::string first = FormatSweepHead(head);
  SweepJournal journal(std::move(file), SealOfRows(first));
  // Killed while the head was written: nothing is lost.
  if (text.size() < first.size() && first.starts_with(text)) {
    DD_RETURN_IF_ERROR(journal.file_->Append(std::string_view(first).substr(text.size())));
    return journal;
  }
  DD_ASSIGN_OR_RETURN(SweepText old, ParseSweep(text, path));
  // As it would read: names lose their tabs in a journal.
  DD_ASSIGN_OR_RETURN(const SweepText own, ParseSweep(first, path));
  if (old.head != own.head) {
    return Fails(
        "E0702", "this journal belongs to another sweep", path,
        "ask as before to go on with it, or name another journal; it stays as it is",
        fmt::format("since it was begun, this changed: {}", WhatDiffers(old.head, own.head)));
  }
  DD_RETURN_IF_ERROR(SortRows(old.rows, path));
  if (old.whole < text.size()) DD_RETURN_IF_ERROR(journal.file_->Truncate(old.whole));
  journal.rows_ = std::move(old.rows);
  return journal;
}

absl::Status SweepJournal::Append(const SweepRow& row) {
  return file_->Append(SealLine(FormatSweepRow(row), seal_));
}

absl::StatusOr<SweepText> MergeSweeps(const std::vector<std::string>& paths) {
  SweepText all;
  for (const std::string& path : paths) {
    LockedFile file(path, O_RDONLY, "E0703");
    DD_RETURN_IF_ERROR(file.status());
    DD_ASSIGN_OR_RETURN(std::string text, file.ReadAll(kLargestJournal));
    DD_ASSIGN_OR_RETURN(SweepText one, ParseSweep(text, path));
    if (&path == &paths.front()) all.head = one.head;
    if (one.head != all.head) {
      return Fails("E0705", fmt::format("{} and {} are of different sweeps", paths.front(), path),
                   path, "merge the shards of one sweep: same trace, files, flags and program",
                   fmt::format("they differ in this: {}", WhatDiffers(all.head, one.head)));
    }
    all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    DD_RETURN_IF_ERROR(SortRows(all.rows, path));
  }
  return all;
}

}  // namespace daydream
