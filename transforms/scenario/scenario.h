// A scenario: the list of optimizations that a user asks for together, and its text in --opt.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "transforms/core/transform.h"

namespace daydream {

class OptionFiles;

// Why `second` cannot follow `first` in one scenario, or none when it can. They may be the same: an
// optimization that is given twice.
std::optional<Conflict> FindConflict(const Transform& first, const Transform& second);

// One item of --opt: a transform with its arguments bound.
struct Application {
  const Transform* transform = nullptr;
  Params params;
  std::shared_ptr<const OptionFile> file = nullptr;  // owns `transform` when it came from a file
};
// "amp(dtype=bf16),fuse" -> two applications, to be applied in this order.
// SPEC := ITEM (',' ITEM)*; ITEM := NAME ['(' ARG (',' ARG)* ')']; ARG := VALUE | KEY '=' VALUE.
// NAME may also be a file (./mine.yaml) or an optimization of one; `files` loads and keeps them.
// Two optimizations that exclude each other are refused (E0111). Errors point at the place
// (`where` holds the text and a caret) and suggest names.
absl::StatusOr<std::vector<Application>> ParseScenario(std::string_view spec,
                                                       OptionFiles* files = nullptr);

}  // namespace daydream
