// The journal of a sweep: a file to which every row is added as soon as it is known, so that a
// sweep that was killed goes on where it was, and that shards leave behind to be merged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "report/questions/sweep.h"
#include "tools/locked_file.h"

namespace daydream {

class SweepJournal {
 public:
  // Creates the file, or goes on with what is there: a half-written last line is cut off. E0702
  // when it belongs to another sweep, E0703 when it cannot be used or another process writes it.
  static absl::StatusOr<SweepJournal> Open(const std::string& path, const SweepHead& head);

  // Rows that were there, each index once.
  const std::vector<SweepRow>& rows() const { return rows_; }
  absl::Status Append(const SweepRow& row);

 private:
  SweepJournal(std::unique_ptr<LockedFile> file, uint64_t seal)
      : file_(std::move(file)), seal_(seal) {}
  std::unique_ptr<LockedFile> file_;
  uint64_t seal_;  // of rows behind this head
  std::vector<SweepRow> rows_;
};

// Reads journals of shards of one sweep. Rows are sorted; a row that several files hold counts
// once. E0705 when the files belong to different sweeps or tell different things of one row.
absl::StatusOr<SweepText> MergeSweeps(const std::vector<std::string>& paths);

}  // namespace daydream
