// A recording that was read once and is asked often. Answers are the JSON of the commands, made by
// the same functions; nothing here knows Python.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tools/flags.h"
#include "tools/input/inputs.h"
#include "tools/input/joint_input.h"
#include "tools/session.h"
#include "transforms/scenario/scenario.h"

namespace daydream {

// Warnings and notes of one call, in their order.
using Messages = std::vector<std::pair<Severity, Diagnostic>>;

// One scenario: what a text of --opt says, and optimizations that are no text.
struct ScenarioParts {
  std::string spec;  // "amp,fuse"; may be empty
  std::vector<Application> own;
};

// `words` are flags as on the command line, for their checks and messages. Immutable: threads may
// share it.
class Recording {
 public:
  // Whoever asks may be interrupted by what `progress` throws.
  using Progress = std::function<void()>;

  // Words: those of `whatif` that say how to read. A folder of ranks without --rank is played
  // together; questions about one rank then fail with E0437.
  static absl::StatusOr<Recording> Load(const std::string& path, std::span<const std::string> words,
                                        const Progress& progress, Messages& messages);

  // daydream.whatif/1, without scenarios of the recorded step alone. E0602 when the replay is
  // further off than --max-replay-error.
  absl::StatusOr<std::string> WhatIf(std::span<const ScenarioParts> scenarios,
                                     std::span<const std::string> words,
                                     const Progress& progress) const;
  // daydream.ranks/1. E0437 for one rank.
  absl::StatusOr<std::string> Ranks() const;
  absl::StatusOr<std::string> Advise(std::span<const std::string> words, const Progress& progress,
                                     Messages& messages) const;
  // By class, op, kernel, layer, phase, stream or host. E0602 and E0607 as WhatIf() and Advise().
  absl::StatusOr<std::string> Summary(std::string_view by) const;
  absl::StatusOr<std::string> Sweep(const std::vector<std::string>& specs,
                                    std::span<const std::string> words,
                                    const Progress& progress) const;

 private:
  Recording() = default;
  absl::Status CheckReplayOf(const Args& args) const;

  std::string path_;
  Inputs in_;                          // of one rank, or
  std::unique_ptr<JointInput> joint_;  // of several
};

}  // namespace daydream
