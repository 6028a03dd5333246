// The files of one `daydream trace`: a folder beside the output that recorded processes write to,
// and the names that their files get at the end. Nothing recorded is ever deleted or replaced
// against the user's will: whatever cannot get its name stays in the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/record/output_pattern.h"

namespace daydream {

// One file that a recorded process wrote.
struct RecordedFile {
  std::string path;   // now
  int64_t pid = 0;    // of the process; 0 when the name does not say
  int64_t rank = -1;  // -1: not one of several
  bool has_gpu_work = false;
};

class RecordSession {
 public:
  // Chooses the number of %n and makes the folder. E0105 when the recording could not get its name
  // in the end: no such folder, not writable, or there and `overwrite` is not set.
  static absl::StatusOr<RecordSession> Begin(OutputPattern pattern, int64_t own_rank,
                                             bool overwrite);

  const std::string& folder() const { return folder_; }  // absolute
  const std::string& id() const { return id_; }          // 32 hexadecimal digits

  // The recordings in the folder, by name. Their ranks and contents are not known yet.
  std::vector<RecordedFile> Files() const;
  // Why recordings could not be written, one text for each, as their processes left it in the
  // folder (tracer/worker.cc). Takes what they left away.
  std::vector<std::string> TakeRefusals() const;
  // Gives each file its name and sets its path. Several files get their ranks into their names,
  // unless the pattern has them, and their process ids when the ranks do not tell them apart.
  // Files that cannot get their names stay where they are; the first reason is returned.
  absl::Status Name(std::vector<RecordedFile>& files) const;
  // Removes the folder if it is empty; true when it is gone.
  bool RemoveFolder() const;

 private:
  std::string NameOf(const RecordedFile& file, bool with_rank, bool with_pid) const;

  OutputPattern pattern_;
  OutputValues values_;
  bool overwrite_ = false;
  std::string folder_, id_;
};

}  // namespace daydream
