// The option files of one command: each is read once, and its optimization can be named like a
// built-in one from then on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "transforms/scenario/option_file.h"

namespace daydream {

class OptionFiles {
 public:
  // `folders` are searched for NAME.yaml when NAME is not known otherwise.
  explicit OptionFiles(std::vector<std::string> folders = {}) : folders_(std::move(folders)) {}

  // Reads the file in `path`, or returns it when it was read before. E0407 when another file has
  // an optimization of the same name.
  absl::StatusOr<std::shared_ptr<const OptionFile>> Load(const std::string& path);
  // What `name` means in --opt: a path (it holds a '/' or ends in .yaml, .yml or .json), the
  // optimization of a file that was read, or a file in one of the folders. nullptr: nothing.
  absl::StatusOr<std::shared_ptr<const OptionFile>> Find(std::string_view name);
  // Reads every NAME.yaml of the folders, by folder and name. Returns the errors of those that
  // cannot be read, which stay unknown; the first file of a name is the one that counts.
  std::vector<absl::Status> LoadFolders();
  // In the order in which they were read.
  std::span<const std::shared_ptr<const OptionFile>> all() const { return files_; }

 private:
  std::vector<std::string> folders_;
  std::vector<std::shared_ptr<const OptionFile>> files_;
};

// Whether `name` is meant as a path.
bool LooksLikeOptionFile(std::string_view name);

}  // namespace daydream
