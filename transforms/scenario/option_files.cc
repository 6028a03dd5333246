#include "transforms/scenario/option_files.h"

#include <algorithm>
#include <filesystem>

namespace daydream {

bool LooksLikeOptionFile(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") ||
         name.ends_with(".yml") || name.ends_with(".json");
}

absl::StatusOr<std::shared_ptr<const OptionFile>> OptionFiles::Load(const std::string& path) {
  for (const auto& file : files_) {
    if (file->path() == path) return file;
  }
  DD_ASSIGN_OR_RETURN(std::shared_ptr<const OptionFile> read, OptionFile::Load(path));
  for (const auto& file : files_) {
    if (file->transform().name != read->transform().name) continue;
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0407",
                       .what = fmt::format("two files are called '{}'", read->transform().name),
                       .where = fmt::format("{} and {}", file->path(), path),
                       .fix = "change name: in one of them"});
  }
  files_.push_back(read);
  return read;
}

std::vector<absl::Status> OptionFiles::LoadFolders() {
  std::vector<absl::Status> errors;
  for (const std::string& folder : folders_) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::filesystem::path& path = entry->path();
      if (path.extension() == ".yaml" && IsOptionName(path.stem().string())) {
        names.push_back(path.stem().string());
      }
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      auto file = Find(name);
      if (!file.ok()) errors.push_back(file.status());
    }
  }
  return errors;
}

absl::StatusOr<std::shared_ptr<const OptionFile>> OptionFiles::Find(std::string_view name) {
  if (LooksLikeOptionFile(name)) return Load(std::string(name));
  for (const auto& file : files_) {
    if (file->transform().name == name) return file;
  }
  if (!IsOptionName(name)) return std::shared_ptr<const OptionFile>();
  for (const std::string& folder : folders_) {
    std::string path = fmt::format("{}/{}.yaml", folder, name);
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return Load(path);
  }
  return std::shared_ptr<const OptionFile>();
}

}  // namespace daydream
