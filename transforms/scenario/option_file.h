// An optimization that a user wrote as a YAML or JSON file (docs/optimization-files.md). It becomes
// a Transform like the built-in ones: parameters with ranges, a page for `explain`, causes that
// point at the lines of the file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "transforms/core/transform.h"

namespace daydream {

struct OptionProgram;
class SourceText;

// What one selector of a file found, for `daydream opt check`.
struct OptionMatch {
  std::string what;  // "define core", "step 1: fuse"
  size_t line = 0;
  size_t tasks = 0;
  std::vector<std::string> names;  // of the first three tasks with different names
  uint64_t skipped = 0;            // matched, but lack a field that the step needs
};

class OptionFile {
 public:
  // Errors are InvalidArgument with a code E04xx, the place and the line with a caret.
  static absl::StatusOr<std::shared_ptr<const OptionFile>> Parse(std::string_view text,
                                                                 std::string_view path);
  // Reads the file; E0401 when that fails.
  static absl::StatusOr<std::shared_ptr<const OptionFile>> Load(const std::string& path);
  ~OptionFile();
  OptionFile(const OptionFile&) = delete;
  OptionFile& operator=(const OptionFile&) = delete;

  // Its name is `name:` of the file. Lives as long as the file.
  const Transform& transform() const { return transform_; }
  const std::string& path() const;
  const OptionProgram& program() const { return *program_; }
  const SourceText& source() const { return *source_; }

  // The lines of the step that `line` is in, with their numbers: at most 40.
  std::vector<std::pair<size_t, std::string>> StepAround(size_t line) const;

  // Runs the steps. Beside what a Transform returns: E0421 when a check of the file fails, E0422
  // when the graph lacks what the file needs, E0423 and E0424 for values that are missing or have
  // no meaning, E0425 when a step makes work wait for itself. Fills `matches` when given.
  absl::Status Apply(const Params& params, Editor& edit,
                     std::vector<OptionMatch>* matches = nullptr) const;

 private:
  friend class OptionFileReader;
  OptionFile();

  std::unique_ptr<SourceText> source_;
  std::unique_ptr<OptionProgram> program_;
  std::vector<std::unique_ptr<std::string>> texts_;  // what the views of transform_ point to
  std::vector<ParamSpec> params_;
  std::vector<Conflict> conflicts_;
  Transform transform_;
};

// A commented file to start from, for `daydream opt new NAME`. REQUIRES: IsOptionName(name).
std::string OptionFileSkeleton(std::string_view name);
// Lower case letters, digits and '-', beginning with a letter, at most 40.
bool IsOptionName(std::string_view name);

}  // namespace daydream
